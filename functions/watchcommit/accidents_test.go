package watchcommit

import (
	"context"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tidemark-dev/tidemark/shared/gittest"
	recorded "github.com/tidemark-dev/tidemark/shared/kubetest/replay"
	"github.com/tidemark-dev/tidemark/shared/queue"
	"github.com/tidemark-dev/tidemark/shared/valkeytest"
)

// Two copies drain while the store, the git server and the API server fail in every way that networks fail: requests
// and answers are lost, pushes land late, locks are held, watches are cut. Nothing is lost, doubled, or out of order.
func TestAccidentsOfEveryKind(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a minute: make soak runs it")
	}
	t.Parallel()
	server := valkeytest.Real(t)
	w := newWorld(t, scenarioOf(11, 250, 160*time.Millisecond, 700*time.Millisecond), server)
	w.target(strings.NewReplacer("clusters/prod", "p", "attributionGrace: 2s", "attributionGrace: 6s").Replace(storyTarget))
	w.tick()

	outage := valkeytest.NewOutage(t, server.Addr)
	ctx, stop := context.WithCancel(context.Background())
	var copies sync.WaitGroup
	direct := w.store
	for range 2 {
		shaky, err := queue.NewRedisStore(queue.RedisStoreConfig{Addr: outage.Addr, KeyPrefix: server.Prefix})
		if err != nil {
			t.Fatal(err)
		}
		w.store = shaky
		f := w.function(func(c *Config) { c.Window, c.Lease = 3*time.Second, time.Second })
		copies.Go(func() {
			defer shaky.Close()
			for ctx.Err() == nil {
				_, _ = f.Drain(ctx, Wake{Tick: true}) // it fails, mostly
				time.Sleep(30 * time.Millisecond)
			}
		})
	}
	w.store = direct

	w.clock.Run(1)
	random := rand.New(rand.NewPCG(11, 3))
	accidents := map[string]int{}
	for w.clock.Now() < w.session.End() {
		w.facts()
		time.Sleep(time.Duration(random.IntN(300)) * time.Millisecond)
		w.git.ClearFaults()
		outage.Set(valkeytest.Fair)
		pushes := func(name string, f gittest.Fault) {
			accidents[name]++
			w.git.Inject(gittest.Pushes, 1, f)
		}
		weather := func(name string, kind valkeytest.Weather, most time.Duration) {
			accidents[name]++
			outage.Set(kind)
			time.Sleep(time.Duration(random.Int64N(int64(most))))
			outage.Set(valkeytest.Fair)
		}
		switch random.IntN(12) {
		case 0:
			weather("store down", valkeytest.Down, 500*time.Millisecond)
		case 1:
			weather("store loses answers", valkeytest.LoseAnswers, 300*time.Millisecond)
		case 2:
			weather("store hangs", valkeytest.Hanging, 700*time.Millisecond)
		case 3:
			pushes("push lost", gittest.LoseRequest)
		case 4:
			pushes("answer lost", gittest.LoseAnswer)
		case 5:
			pushes("push late", gittest.ActLate(400*time.Millisecond))
		case 6:
			pushes("lock held", w.repo.HoldLock("main"))
		case 7:
			pushes("server busy", gittest.Refuse(http.StatusServiceUnavailable, "1"))
		case 8:
			pushes("answer cut", gittest.CutAnswer(random.IntN(40)))
		case 9:
			accidents["watches cut"]++
			w.api.Disconnect()
		case 10:
			accidents["watch refused"]++
			w.api.Inject(recorded.Fault{Watch: true, Times: 3, Status: http.StatusTooManyRequests, RetryAfter: 1})
		case 11:
			accidents["reads refused"]++
			w.git.Inject(gittest.Reads, 2, gittest.Refuse(http.StatusBadGateway, ""))
		}
	}
	w.facts()
	w.git.ClearFaults()
	outage.Set(valkeytest.Fair)
	time.Sleep(time.Second) // what lands late
	stop()
	copies.Wait()
	time.Sleep(1100 * time.Millisecond) // a lease whose answer was lost
	v := w.settled(6*time.Second, "p", storyResources...)
	t.Logf("%d changes, accidents %v", v.Changes, accidents)
	if !v.Sound() {
		t.Errorf("%s", strings.Join(v.Faults(), "\n"))
	}
}
