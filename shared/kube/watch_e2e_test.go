//go:build e2e

package kube_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/tidemark-dev/tidemark/shared/kube"
	"github.com/tidemark-dev/tidemark/shared/kubetest"
)

var configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}

// TestSessions follows a shard through what happens to a control plane. Each part goes on where the one before ended.
func TestSessions(t *testing.T) {
	c := kubetest.Start(t, kubetest.Options{})
	client, err := kube.NewClient(c.Config(kubetest.Admin), "test")
	if err != nil {
		t.Fatal(err)
	}
	maps := c.Client(kubetest.Admin).Resource(configMaps).Namespace("default")
	shard := kube.Shard{Resource: kube.Resource{GroupVersionResource: configMaps, Kind: "ConfigMap", Namespaced: true}, Namespace: "default", Selector: labels.Everything()}
	put := func(name, value string) string { return write(t, maps, name, value) }

	put("one", "1")
	put("two", "1")
	first := follow(t, client, shard, "", "")
	if first.kinds() != "start initial initial end caught-up" {
		t.Fatalf("the first replay says %s", first.kinds())
	}
	cursor := first.rv

	t.Run("resumes after the cursor", func(t *testing.T) {
		put("one", "2")
		last := put("two", "2")
		got := follow(t, client, shard, cursor, last)
		if got.changes() != "one=2 two=2" || got.rv != last {
			t.Errorf("got %s up to %s, want one=2 two=2 up to %s", got.changes(), got.rv, last)
		}
		cursor = got.rv
	})
	t.Run("a replay is repeated as it was", func(t *testing.T) {
		got := repeat(t, client, shard, first.rv)
		if got.kinds() != "start initial initial end change change caught-up" || got.changes() != "one=1 two=1 one=2 two=2" {
			t.Errorf("got %s: %s", got.kinds(), got.changes())
		}
	})
	t.Run("a delete is delivered with the object as it was", func(t *testing.T) {
		if err := maps.Delete(context.Background(), "two", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		got := follow(t, client, shard, cursor, "")
		if len(got.signals) == 0 || got.changes() != "-two=2" {
			t.Errorf("got %s, want -two=2", got.changes())
		}
		cursor = got.rv
	})
	t.Run("an API server that restarted has forgotten, etcd has not", func(t *testing.T) {
		noted := put("one", "3")
		put("one", "4")
		c.RestartAPIServer()
		got := follow(t, client, shard, cursor, "")
		if got.kinds() != "expired" {
			t.Fatalf("got %s, want expired", got.kinds())
		}
		session := client.NewSession(shard, cursor, nil)
		old, err := session.ReadBack(context.Background(), "default", "one", noted)
		if err != nil || old == nil || value(old) != "3" {
			t.Errorf("read back %v, %v, want the value 3", old, err)
		}
		gone, err := session.ReadBack(context.Background(), "default", "never", noted)
		if err != nil || gone != nil {
			t.Errorf("read back %v, %v of an object that was not there", gone, err)
		}
		if again := repeat(t, client, shard, noted); again.kinds() != "start initial end expired" || again.changes() != "one=3" {
			t.Errorf("a replay of before the restart: %s: %s", again.kinds(), again.changes())
		}
		replay := follow(t, client, shard, "", "")
		if replay.changes() != "one=4" {
			t.Errorf("the replay has %s, want one=4", replay.changes())
		}
		cursor = replay.rv
	})
	t.Run("after a compaction only a replay helps", func(t *testing.T) {
		noted := put("one", "5")
		put("one", "6")
		c.Compact()
		if got := follow(t, client, shard, cursor, ""); got.kinds() != "expired" {
			t.Errorf("got %s, want expired", got.kinds())
		}
		if got := repeat(t, client, shard, noted); got.kinds() != "start expired" {
			t.Errorf("a replay of the past: got %s, want start expired", got.kinds())
		}
		_, err := client.NewSession(shard, cursor, nil).ReadBack(context.Background(), "default", "one", noted)
		if !errors.Is(err, kube.ErrForgotten) {
			t.Errorf("read back: %v, want ErrForgotten", err)
		}
	})
	t.Run("a cursor from before the restore of a backup is expired", func(t *testing.T) {
		backup := c.Backup()
		ahead := ""
		for i := range 5 {
			ahead = put("one", fmt.Sprint(10+i))
		}
		c.Restore(backup)
		if got := follow(t, client, shard, ahead, ""); got.kinds() != "expired" {
			t.Errorf("got %s, want expired", got.kinds())
		}
		if got := repeat(t, client, shard, ahead); got.kinds() != "expired" {
			t.Errorf("a replay of before the restore: got %s, want expired", got.kinds())
		}
		if got := follow(t, client, shard, "", ""); got.changes() != "one=6" {
			t.Errorf("the replay has %s, want one=6", got.changes())
		}
	})
	t.Run("leaving a selector is a removal", func(t *testing.T) {
		some := shard
		some.Selector = labels.SelectorFromSet(labels.Set{"mirror": "yes"})
		label := func(v string) {
			patch := []byte(`{"metadata":{"labels":{"mirror":"` + v + `"}}}`)
			if _, err := maps.Patch(context.Background(), "one", types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		label("yes")
		replay := follow(t, client, some, "", "")
		if replay.changes() != "one=6" {
			t.Fatalf("the replay has %s, want one=6", replay.changes())
		}
		label("no")
		if got := follow(t, client, some, replay.rv, ""); got.changes() != "-one=6" {
			t.Errorf("got %s, want -one=6", got.changes())
		}
	})
	t.Run("a custom type is followed as soon as it is served", func(t *testing.T) {
		c.Apply("crds/gittargets.yaml", "samples/gittarget.yaml")
		of := kube.Shard{Resource: kube.Resource{GroupVersionResource: kube.GitTargets, Kind: "GitTarget"}, Selector: labels.Everything()}
		if got := follow(t, client, of, "", ""); got.kinds() != "start initial end caught-up" {
			t.Errorf("got %s", got.kinds())
		}
	})
}

func write(t *testing.T, maps dynamic.ResourceInterface, name, v string) string {
	t.Helper()
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": name}, "data": map[string]any{"v": v}}}
	out, err := maps.Apply(context.Background(), name, u, metav1.ApplyOptions{FieldManager: "test", Force: true})
	if err != nil {
		t.Fatal(err)
	}
	return out.GetResourceVersion()
}

func value(u *unstructured.Unstructured) string {
	v, _, _ := unstructured.NestedString(u.Object, "data", "v")
	return v
}

// seen is what a session said until it had caught up, and the version wanted was there.
type seen struct {
	signals []kube.Signal
	rv      string
}

func follow(t *testing.T, client *kube.Client, shard kube.Shard, from, until string) seen {
	t.Helper()
	return run(t, client.NewSession(shard, from, nil), until)
}

// repeat follows a shard from a replay of the past.
func repeat(t *testing.T, client *kube.Client, shard kube.Shard, since string) seen {
	t.Helper()
	session := client.NewSession(shard, "", nil)
	session.Since = since
	return run(t, session, "")
}

func run(t *testing.T, session *kube.Session, until string) seen {
	t.Helper()
	from := session.From
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	out := make(chan kube.Signal)
	go session.Run(ctx, out)
	got := seen{rv: from}
	for {
		select {
		case <-ctx.Done():
			t.Fatalf("the session from %q said only %s", from, got.kinds())
		case s := <-out:
			got.signals = append(got.signals, s)
			switch s.Kind {
			case kube.Change, kube.InitialEnd, kube.Bookmark:
				got.rv = s.RV
			case kube.Failed:
				t.Fatalf("the session from %q failed: %v", from, s.Err)
			case kube.Expired:
				return got
			case kube.CaughtUp:
				if until != "" && got.rv != until {
					t.Errorf("caught up at %s, want %s", got.rv, until)
				}
				return got
			}
		}
	}
}

func (s seen) kinds() string {
	names := map[kube.SignalKind]string{kube.InitialStart: "start", kube.Initial: "initial", kube.InitialEnd: "end", kube.Change: "change",
		kube.Bookmark: "bookmark", kube.CaughtUp: "caught-up", kube.Expired: "expired", kube.Failed: "failed"}
	out := ""
	for i, signal := range s.signals {
		if i > 0 {
			out += " "
		}
		out += names[signal.Kind]
	}
	return out
}

// changes are the objects with their values, in order; a removal has a minus.
func (s seen) changes() string {
	out := ""
	for _, signal := range s.signals {
		if signal.Object == nil || signal.Kind != kube.Change && signal.Kind != kube.Initial {
			continue
		}
		if out != "" {
			out += " "
		}
		if signal.Type == "DELETED" {
			out += "-"
		}
		out += signal.Object.GetName() + "=" + value(signal.Object)
	}
	return out
}
