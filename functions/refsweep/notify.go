package refsweep

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"time"

	"github.com/cloudevents/sdk-go/v2/event"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/tidemark-dev/tidemark/shared/gitpoll"
)

// EventType is the type of the CloudEvent about moves.
const EventType = "dev.tidemark.refs.moved"

const (
	sinkTimeout = 10 * time.Second
	sinkTries   = 3
	sinkPause   = 500 * time.Millisecond // before the second try; doubled before the third, spread by half
	// annotations bounds the annotations sent at a time.
	annotations = 8
)

// Notification is the data of the CloudEvent.
type Notification struct {
	Fleet    string  `json:"fleet"`
	Sweep    int64   `json:"sweep"`
	Moved    []Moved `json:"moved"`
	Appeared []Moved `json:"appeared,omitempty"`
}

// notify tells of the moves: one CloudEvent for all, and one annotation each. It returns those that are told; the error
// is of what has to be told again.
func (f *function) notify(ctx context.Context, sweep *gitpoll.FleetSweep, moves []gitpoll.Move) ([]gitpoll.Move, error) {
	if len(moves) == 0 {
		return nil, nil
	}
	if f.sink != nil {
		moved, appeared := split(moves)
		err := f.sink.send(ctx, Notification{Fleet: f.cfg.Fleet, Sweep: sweep.Number, Moved: moved, Appeared: appeared})
		f.notifications.WithLabelValues("cloudevent", outcome(err)).Inc()
		if err != nil {
			return nil, err
		}
	}
	if f.deps.Annotate == nil {
		return moves, nil
	}
	return f.annotate(ctx, moves)
}

// annotate asks for the sources that moved to be reconciled. One that may not be annotated, or is gone, counts as told:
// telling it again would not help.
func (f *function) annotate(ctx context.Context, moves []gitpoll.Move) (told []gitpoll.Move, err error) {
	var mu sync.Mutex
	var failed []error
	turns := make(chan struct{}, annotations)
	var all sync.WaitGroup
	for _, m := range moves {
		if m.Previous == "" {
			mu.Lock()
			told = append(told, m) // source-controller looks at a new source by itself
			mu.Unlock()
			continue
		}
		turns <- struct{}{}
		all.Go(func() {
			defer func() { <-turns }()
			err := f.deps.Annotate(ctx, m.Source)
			f.notifications.WithLabelValues("annotation", outcome(err)).Inc()
			mu.Lock()
			defer mu.Unlock()
			switch {
			case apierrors.IsNotFound(err), apierrors.IsForbidden(err):
				f.tel.Log.Error("not annotated", "target", m.Source.String(), "error", err)
				fallthrough
			case err == nil:
				told = append(told, m)
			default:
				failed = append(failed, err)
			}
		})
	}
	all.Wait()
	if len(failed) > 0 {
		return told, fmt.Errorf("%d of %d annotations failed, the first with: %w", len(failed), len(moves), failed[0])
	}
	return told, nil
}

func outcome(err error) string {
	if err != nil {
		return "failed"
	}
	return "sent"
}

// sink posts CloudEvents.
type sink struct {
	url, source string
	extensions  map[string]string
	client      *http.Client
}

func newSink(cfg Config) *sink {
	return &sink{
		url:        cfg.Sink,
		source:     "/tidemark/refsweep/" + cfg.Fleet,
		extensions: cfg.Overrides.Extensions,
		client: &http.Client{
			Timeout:       sinkTimeout,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}
}

// send posts the notification as a structured CloudEvent, again after a pause where that may help. Any 2xx takes it.
func (s *sink) send(ctx context.Context, n Notification) error {
	e := event.New()
	e.SetID(n.Fleet + "-" + strconv.FormatInt(n.Sweep, 10))
	e.SetType(EventType)
	e.SetSource(s.source)
	e.SetTime(time.Now())
	for name, value := range s.extensions {
		e.SetExtension(name, value)
	}
	if err := e.SetData(event.ApplicationJSON, n); err != nil {
		return fmt.Errorf("make the CloudEvent: %w", err)
	}
	body, err := json.Marshal(e)
	if err != nil {
		return fmt.Errorf("make the CloudEvent: %w", err)
	}
	pause := sinkPause
	for try := 1; ; try++ {
		again, err := s.post(ctx, body)
		if err == nil {
			return nil
		}
		err = fmt.Errorf("send the CloudEvent: %w", err)
		if !again || try == sinkTries {
			return err
		}
		select {
		case <-time.After(pause/2 + rand.N(pause)):
			pause *= 2
		case <-ctx.Done():
			return err
		}
	}
}

func (s *sink) post(ctx context.Context, body []byte) (again bool, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url, bytes.NewReader(body))
	if err != nil {
		return false, errors.New("K_SINK is not a usable URL")
	}
	req.Header.Set("Content-Type", event.ApplicationCloudEventsJSON)
	resp, err := s.client.Do(req)
	if err != nil {
		var wrapped *url.Error
		if errors.As(err, &wrapped) {
			err = wrapped.Err // without the URL
		}
		return ctx.Err() == nil, err
	}
	defer resp.Body.Close()
	_, _ = io.CopyN(io.Discard, resp.Body, 64<<10)
	if resp.StatusCode/100 == 2 {
		return false, nil
	}
	return resp.StatusCode >= 500 || resp.StatusCode == http.StatusTooManyRequests, fmt.Errorf("the sink answered %d %s", resp.StatusCode, http.StatusText(resp.StatusCode))
}
