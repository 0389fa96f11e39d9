package replay

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// stream is one open watch.
type stream struct {
	*store
	filter
	enc       *json.Encoder
	flush     func()
	bookmarks bool
	seen      map[string]*unstructured.Unstructured // every object of the collection, also those filtered out
	left      int                                   // events until an injected disconnect; negative: none
}

// watch serves a WATCH: what happened after the resourceVersion, then what happens.
func (s *Server) watch(w http.ResponseWriter, r *http.Request, st *store, f filter) {
	q := r.URL.Query()
	from, current := version(q.Get("resourceVersion")), s.timeline.current(s.clock.Now())
	initial := q.Get("sendInitialEvents") == "true"
	out := &stream{store: st, filter: f, enc: json.NewEncoder(w), bookmarks: q.Get("allowWatchBookmarks") == "true", left: s.cutAfter(r)}
	name := st.GroupResource().String()
	if initial && (q.Get("resourceVersionMatch") != "NotOlderThan" || !out.bookmarks) {
		s.count("watch " + name)
		refuse(w, http.StatusUnprocessableEntity, metav1.StatusReasonInvalid,
			"sendInitialEvents requires resourceVersionMatch NotOlderThan and allowWatchBookmarks")
		return
	}
	if initial && from > current && !s.reach(r, from) {
		s.count("watch " + name)
		tooLarge(w, from, current)
		return
	}
	controller := http.NewResponseController(w)
	out.flush = func() { _ = controller.Flush() }
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusOK)
	out.flush()

	current = s.timeline.current(s.clock.Now())
	s.count("watch " + name)
	switch {
	case initial || from == 0:
		from = current
		out.begin(st.state(current))
		if initial {
			out.sendBookmark(current, true)
		}
	case from < max(st.base(), s.oldest()):
		old := status(http.StatusGone, metav1.StatusReasonExpired, fmt.Sprintf("too old resource version: %d (%d)", from, max(st.base(), s.oldest())))
		_ = out.enc.Encode(map[string]any{"type": "ERROR", "object": old})
		return
	default:
		out.seen = st.state(from)
		s.mu.Lock()
		s.resumed[name] = true
		s.mu.Unlock()
	}
	s.live(r.Context(), out, st.after(from), timeout(q.Get("timeoutSeconds")))
}

// timeout is how long a watch stays open: as asked, else about as long as a real server does.
func timeout(seconds string) time.Duration {
	if n, err := strconv.Atoi(seconds); err == nil && n > 0 {
		return time.Duration(n) * time.Second
	}
	return 30 * time.Minute
}

// live sends events as the clock reaches them, and before the end a bookmark that says how far it came.
func (s *Server) live(ctx context.Context, out *stream, next int, open time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, open)
	defer cancel()
	s.mu.Lock()
	cut := s.cut
	s.mu.Unlock()
	go func() {
		select {
		case <-cut:
			cancel()
		case <-ctx.Done():
		}
	}()
	farewell := make(chan struct{})
	if open > 2*time.Second {
		defer time.AfterFunc(open-2*time.Second, func() { close(farewell) }).Stop()
	}
	for {
		arrived := make(chan error, 1)
		if next < len(out.Live) {
			go func() { arrived <- s.clock.Wait(ctx, out.Live[next].At) }()
		}
		select {
		case <-ctx.Done():
			return
		case <-farewell:
			farewell = nil
			out.sendBookmark(out.delivered(next, s.timeline.current(s.clock.Now())), false)
			continue // the goroutine that waits for the event ends with it, or with the watch
		case err := <-arrived:
			if err != nil {
				return
			}
		}
		if !out.send(out.Live[next]) {
			return
		}
		next++
	}
}

// begin sends the collection as it is.
func (o *stream) begin(state map[string]*unstructured.Unstructured) {
	o.seen = state
	for _, obj := range o.sorted() {
		o.encode("ADDED", obj)
	}
	o.flush()
}

func (o *stream) sorted() []*unstructured.Unstructured {
	var out []*unstructured.Unstructured
	for _, k := range sortedKeys(o.seen) {
		if o.matches(o.seen[k]) {
			out = append(out, o.seen[k])
		}
	}
	return out
}

// send passes an event on as the filter shows it: an object that begins to match is ADDED, one that stops is
// DELETED, in the state in which it matched and with the version at which it stopped. False ends the watch.
func (o *stream) send(ev Event) bool {
	if ev.Type == bookmark {
		if o.bookmarks {
			o.sendBookmark(version(ev.Object.GetResourceVersion()), false)
		}
		return true
	}
	k := key(ev.Object)
	before := o.seen[k]
	had, has := before != nil && o.matches(before), o.matches(ev.Object)
	if ev.Type == "DELETED" {
		delete(o.seen, k)
	} else {
		o.seen[k] = ev.Object
	}
	switch {
	case ev.Type == "DELETED" && (had || has):
		o.encode("DELETED", ev.Object)
	case ev.Type == "DELETED" || !had && !has:
		return true
	case has && !had:
		o.encode("ADDED", ev.Object)
	case has:
		o.encode("MODIFIED", ev.Object)
	default:
		gone := before.DeepCopy()
		gone.SetResourceVersion(ev.Object.GetResourceVersion())
		o.encode("DELETED", gone)
	}
	o.flush()
	o.left--
	return o.left != 0
}

func (o *stream) sendBookmark(rv uint64, endOfInitial bool) {
	if !o.bookmarks {
		return
	}
	meta := map[string]any{"resourceVersion": format(rv), "creationTimestamp": nil}
	if endOfInitial {
		meta["annotations"] = map[string]any{initialEventsEnd: "true"}
	}
	obj := map[string]any{"kind": o.Kind, "apiVersion": o.GroupVersion().String(), "metadata": meta}
	_ = o.enc.Encode(map[string]any{"type": bookmark, "object": obj})
	o.flush()
}

func (o *stream) encode(kind string, obj *unstructured.Unstructured) {
	_ = o.enc.Encode(map[string]any{"type": kind, "object": obj.Object})
}
