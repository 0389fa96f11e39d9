package kube

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/labels"
)

func TestSession(t *testing.T) {
	cut := func(w http.ResponseWriter, _ *http.Request) { panic(http.ErrAbortHandler) }
	for _, c := range []struct {
		name  string
		from  string
		steps []func(http.ResponseWriter, *http.Request)
		want  []string
		waits bool // for something that does not come
	}{
		{
			"resumes at the cursor and is caught up at the newest version", "100",
			[]func(http.ResponseWriter, *http.Request){listed("102", ""), watched(forever, modified("one", "101"), deleted("one", "102"), added("one", "103"))},
			[]string{"modified one@101", "deleted one@102", "caught up", "added one@103"},
			false,
		},
		{
			"is caught up by a bookmark", "100",
			[]func(http.ResponseWriter, *http.Request){listed("102", ""), watched(forever, bookmark("102", false))},
			[]string{"bookmark@102", "caught up"},
			false,
		},
		{
			"is caught up by silence when other types moved the version", "100",
			[]func(http.ResponseWriter, *http.Request){listed("9000", ""), watched(forever)},
			[]string{"caught up"},
			true,
		},
		{
			"an expired cursor is said once", "100",
			[]func(http.ResponseWriter, *http.Request){listed("400", ""), watched(forever, expired)},
			[]string{"expired"},
			false,
		},
		{
			"an expired cursor may also be an HTTP 410", "100",
			[]func(http.ResponseWriter, *http.Request){listed("400", ""), refused(410, "Expired")},
			[]string{"expired"},
			false,
		},
		{
			"a cursor from the future is expired", "9000",
			[]func(http.ResponseWriter, *http.Request){listed("400", "")},
			[]string{"expired"},
			false,
		},
		{
			"a cursor that is no version is expired", "what",
			[]func(http.ResponseWriter, *http.Request){listed("400", "")},
			[]string{"expired"},
			false,
		},
		{
			"a disconnect resumes after what was delivered", "100",
			[]func(http.ResponseWriter, *http.Request){listed("102", ""), watched(0, modified("one", "101")), watched(forever, modified("one", "102"))},
			[]string{"modified one@101", "modified one@102", "caught up"},
			false,
		},
		{
			"an answer that is cut, a 429 and a 500 are tried again", "100",
			[]func(http.ResponseWriter, *http.Request){cut, listed("101", ""), refused(429, "TooManyRequests"), cut, refused(500, "InternalError"), watched(forever, modified("one", "101"))},
			[]string{"caught up", "modified one@101"},
			false,
		},
		{
			"trouble that does not end is a failure", "100",
			[]func(http.ResponseWriter, *http.Request){listed("101", ""), refused(500, "InternalError")},
			[]string{"caught up", "failed: no"},
			false,
		},
		{
			"no permission is a failure at once", "100",
			[]func(http.ResponseWriter, *http.Request){refused(403, "Forbidden")},
			[]string{"failed: no"},
			false,
		},
		{
			"a server that ends each watch at once is not asked for ever", "100",
			[]func(http.ResponseWriter, *http.Request){listed("101", ""), watched(0)},
			[]string{"caught up", "failed: the API server ends each watch at once"},
			false,
		},
		{
			"an expired version in the middle is said after what came before", "100",
			[]func(http.ResponseWriter, *http.Request){listed("500", ""), watched(0, modified("one", "101")), watched(0, expired)},
			[]string{"modified one@101", "expired"},
			false,
		},
		{
			"a replay streams the initial objects and goes on live; a bookmark within it is not its end", "",
			[]func(http.ResponseWriter, *http.Request){watched(forever, added("one", "380"), bookmark("405", false), added("two", "401"), bookmark("410", true), modified("one", "411"))},
			[]string{"start", "initial one@380", "initial two@401", "end@410", "caught up", "modified one@411"},
			false,
		},
		{
			"a replay that breaks off begins anew", "",
			[]func(http.ResponseWriter, *http.Request){watched(0, added("one", "380")), watched(forever, added("two", "401"), bookmark("410", true))},
			[]string{"start", "initial one@380", "start", "initial two@401", "end@410", "caught up"},
			false,
		},
		{
			"a server that never ends its initial events is asked for a list", "",
			[]func(http.ResponseWriter, *http.Request){
				watched(forever, added("one", "411")),
				listed("412", "more", item("one", "411")), listed("412", "", item("two", "400")),
				watched(forever, modified("two", "413")),
			},
			[]string{"start", "initial one@411", "start", "initial one@411", "initial two@400", "end@412", "caught up", "modified two@413"},
			true,
		},
		{
			"a server that refuses initial events is asked for a list", "",
			[]func(http.ResponseWriter, *http.Request){refused(422, "Invalid"), listed("412", "", item("one", "411")), watched(forever)},
			[]string{"start", "initial one@411", "end@412", "caught up"},
			false,
		},
		{
			"a server that takes no notice of initial events is asked for a list", "",
			[]func(http.ResponseWriter, *http.Request){watched(forever, modified("one", "411")), listed("412", "", item("one", "411")), watched(forever)},
			[]string{"start", "start", "initial one@411", "end@412", "caught up"},
			false,
		},
		{
			"a list whose next page has expired begins anew", "",
			[]func(http.ResponseWriter, *http.Request){
				refused(422, "Invalid"), listed("412", "more", item("one", "411")), refused(410, "Expired"),
				listed("420", "", item("two", "419")), watched(forever),
			},
			[]string{"start", "initial one@411", "start", "initial two@419", "end@420", "caught up"},
			false,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			session, _ := scriptedSession(t, Shard{Namespace: "shop"}, c.from, c.steps...)
			if c.waits {
				session.timing.initial, session.timing.silence = time.Second, time.Second
			}
			if got := tell(t, session, len(c.want)); !cmp.Equal(got, c.want) {
				t.Errorf("%s", cmp.Diff(c.want, got))
			}
		})
	}
}

func TestEveryWatchIsBoundedAndAsksForBookmarks(t *testing.T) {
	t.Parallel()
	selector, err := labels.Parse("app=web")
	if err != nil {
		t.Fatal(err)
	}
	session, s := scriptedSession(t, Shard{Selector: selector}, "", refused(422, "Invalid"), listed("5", ""), watched(0, bookmark("7", false)), watched(forever))
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	out := make(chan Signal, 16)
	ended := make(chan struct{})
	go func() {
		session.Run(ctx, out)
		close(ended)
	}()
	for len(s.requests()) < 4 && ctx.Err() == nil {
		time.Sleep(time.Millisecond)
	}
	cancel()
	<-ended
	asked := s.requests()
	if len(asked) != 4 {
		t.Fatalf("requests: %v", asked)
	}
	for i, q := range asked {
		if q.Get("labelSelector") != "app=web" {
			t.Errorf("request %d has the selector %q", i, q.Get("labelSelector"))
		}
		if q.Get("watch") != "true" {
			continue
		}
		if got, err := strconv.Atoi(q.Get("timeoutSeconds")); err != nil || got < 1 || got > 29 {
			t.Errorf("request %d: timeoutSeconds %d, %v, want what is left of 30 s", i, got, err)
		}
		if q.Get("allowWatchBookmarks") != "true" {
			t.Errorf("request %d asks for no bookmarks", i)
		}
	}
	if got := asked[0]; got.Get("sendInitialEvents") != "true" || got.Get("resourceVersionMatch") != "NotOlderThan" {
		t.Errorf("the replay asks %v", got)
	}
	if got := asked[3].Get("resourceVersion"); got != "7" {
		t.Errorf("the second watch resumes at %q, want the bookmark's 7", got)
	}
}

func TestAReplayIsRepeatedAsItWas(t *testing.T) {
	for _, c := range []struct {
		name  string
		steps []func(http.ResponseWriter, *http.Request)
		want  []string
	}{
		{
			"and what happened since follows as changes",
			[]func(http.ResponseWriter, *http.Request){
				listed("412", ""), listed("410", "more", item("one", "380")), listed("410", "", item("two", "401")),
				watched(forever, modified("one", "411"), deleted("two", "412")),
			},
			[]string{"start", "initial one@380", "initial two@401", "end@410", "modified one@411", "deleted two@412", "caught up"},
		},
		{
			"unless it is forgotten",
			[]func(http.ResponseWriter, *http.Request){listed("412", ""), refused(410, "Expired")},
			[]string{"start", "expired"},
		},
		{
			"unless it is forgotten between two pages",
			[]func(http.ResponseWriter, *http.Request){listed("412", ""), listed("410", "more", item("one", "380")), refused(410, "Expired")},
			[]string{"start", "initial one@380", "expired"},
		},
		{
			"unless the server cannot list the past",
			[]func(http.ResponseWriter, *http.Request){listed("412", ""), refused(400, "BadRequest")},
			[]string{"start", "expired"},
		},
		{
			"unless the cluster was set back to before it",
			[]func(http.ResponseWriter, *http.Request){listed("400", "")},
			[]string{"expired"},
		},
		{
			"and the watch from there may be expired",
			[]func(http.ResponseWriter, *http.Request){listed("412", ""), listed("410", "", item("one", "380")), watched(forever, expired)},
			[]string{"start", "initial one@380", "end@410", "expired"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			session, s := scriptedSession(t, Shard{}, "", c.steps...)
			session.Since = "410"
			if got := tell(t, session, len(c.want)); !cmp.Equal(got, c.want) {
				t.Errorf("%s", cmp.Diff(c.want, got))
			}
			for i, asked := range s.requests()[1:] {
				exact := asked.Get("resourceVersion") == "410" && asked.Get("resourceVersionMatch") == "Exact"
				if next := asked.Get("continue") != ""; asked.Get("watch") == "" && exact == next {
					t.Errorf("request %d asks for %v", i, asked)
				}
			}
		})
	}
}

func TestReadBack(t *testing.T) {
	t.Parallel()
	session, s := scriptedSession(t, Shard{}, "100",
		listed("101", "", item("other", "90"), item("one", "101")), listed("102", ""), refused(410, "Expired"))
	ctx := context.Background()
	object, err := session.ReadBack(ctx, "shop", "one", "101")
	if err != nil || object == nil || object.GetResourceVersion() != "101" {
		t.Fatalf("got %v %v", object, err)
	}
	if object, err = session.ReadBack(ctx, "shop", "one", "102"); err != nil || object != nil {
		t.Fatalf("an object that was gone: %v %v", object, err)
	}
	if _, err = session.ReadBack(ctx, "shop", "one", "103"); err == nil || !strings.Contains(err.Error(), ErrForgotten.Error()) {
		t.Fatalf("a version that is gone: %v", err)
	}
	want := url.Values{"fieldSelector": {"metadata.name=one"}, "resourceVersion": {"101"}, "resourceVersionMatch": {"Exact"}}
	if got := s.requests()[0]; !cmp.Equal(got, want) {
		t.Errorf("%s", cmp.Diff(want, got))
	}
}

// TestRecordedSession plays the recorded expiry: a 410 on resume, then a replay with a bookmark in its midst.
func TestRecordedSession(t *testing.T) {
	raw, err := os.ReadFile("../../events/samples/cases/join/13-watch-expiry-and-bookmarks/input.json")
	if err != nil {
		t.Fatal(err)
	}
	var recorded struct {
		Session []struct{ Events []json.RawMessage }
	}
	if err := json.Unmarshal(raw, &recorded); err != nil {
		t.Fatal(err)
	}
	lines := func(n int) (out []string) {
		for _, e := range recorded.Session[n].Events {
			out = append(out, strings.ReplaceAll(string(e), "\n", ""))
		}
		return out
	}
	session, _ := scriptedSession(t, Shard{Namespace: "shop"}, "100", listed("400", ""), watched(forever, lines(0)...))
	if got, want := tell(t, session, 1), []string{"expired"}; !cmp.Equal(got, want) {
		t.Errorf("resume: %s", cmp.Diff(want, got))
	}
	session, _ = scriptedSession(t, Shard{Namespace: "shop"}, "", watched(forever, lines(1)...))
	want := []string{"start", "initial one@380", "initial two@401", "end@410", "caught up", "modified one@411"}
	if got := tell(t, session, len(want)); !cmp.Equal(got, want) {
		t.Errorf("replay: %s", cmp.Diff(want, got))
	}
	session, _ = scriptedSession(t, Shard{Namespace: "shop"}, "", watched(forever, lines(2)...), listed("411", "", item("one", "411")), watched(forever))
	want = []string{"start", "initial one@411", "start", "initial one@411", "end@411", "caught up"}
	session.timing.initial = time.Second
	if got := tell(t, session, len(want)); !cmp.Equal(got, want) {
		t.Errorf("no end marker: %s", cmp.Diff(want, got))
	}
}

func TestRecordedErrorsOfAWatch(t *testing.T) {
	read := func(name string) []byte {
		raw, err := os.ReadFile("../../events/samples/corpus/protocol/" + name)
		if err != nil {
			t.Fatal(err)
		}
		return raw
	}
	status := func(name string) func(http.ResponseWriter, *http.Request) {
		var answer struct {
			Status int             `json:"http_status"`
			Body   json.RawMessage `json:"body"`
		}
		if err := json.Unmarshal(read(name), &answer); err != nil {
			t.Fatal(err)
		}
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(answer.Status)
			_, _ = w.Write(answer.Body)
		}
	}
	for _, c := range []struct {
		name  string
		steps []func(http.ResponseWriter, *http.Request)
		want  []string
	}{
		{"a custom resource whose storage begins again", []func(http.ResponseWriter, *http.Request){listed("101", ""), status("watch-429-storage-reinitializing.json"), watched(forever, modified("one", "101"))}, []string{"modified one@101", "caught up"}},
		{"an error line", []func(http.ResponseWriter, *http.Request){listed("400", ""), watched(forever, strings.TrimSpace(string(read("watch-error-410.jsonl"))))}, []string{"expired"}},
		{"a list of a version that is gone", []func(http.ResponseWriter, *http.Request){status("list-exact-rv-410.json")}, []string{"expired"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			session, _ := scriptedSession(t, Shard{Namespace: "shop"}, "100", c.steps...)
			if got := tell(t, session, len(c.want)); !cmp.Equal(got, c.want) {
				t.Errorf("%s", cmp.Diff(c.want, got))
			}
		})
	}
	session, _ := scriptedSession(t, Shard{Namespace: "shop"}, "100", status("watch-401.json"))
	if got := tell(t, session, 1); len(got) != 1 || !strings.HasPrefix(got[0], "failed: ") {
		t.Errorf("401: got %v, want a failure", got)
	}
}
