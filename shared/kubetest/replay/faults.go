package replay

import (
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Fault is a bad moment of the API server.
type Fault struct {
	Path  string // the part of the path that a request must hold; empty is every request
	Watch bool   // only watches
	Times int    // how many requests it meets; 0 is one

	Status      int  // answer with this code (401, 403, 410, 429, 500, …)
	RetryAfter  int  // seconds, with Status
	Drop        bool // hang up instead of answering
	AfterEvents int  // end a watch after so many events
}

// Inject makes the next requests that match meet a fault.
func (s *Server) Inject(f Fault) {
	f.Times = max(f.Times, 1)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = append(s.faults, &f)
}

// take finds a fault for a request and uses it up.
func (s *Server) take(r *http.Request, want func(*Fault) bool) *Fault {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, f := range s.faults {
		if !want(f) || !strings.Contains(r.URL.Path, f.Path) || f.Watch && r.URL.Query().Get("watch") == "" {
			continue
		}
		if f.Times--; f.Times == 0 {
			s.faults = slices.Delete(s.faults, i, i+1)
		}
		return f
	}
	return nil
}

func (s *Server) fault(r *http.Request) *Fault {
	return s.take(r, func(f *Fault) bool { return f.Status != 0 || f.Drop })
}

// cutAfter is how many events a watch may send; negative is any number.
func (s *Server) cutAfter(r *http.Request) int {
	if f := s.take(r, func(f *Fault) bool { return f.AfterEvents > 0 }); f != nil {
		return f.AfterEvents
	}
	return -1
}

// apply answers the request as the fault has it, or hangs up.
func (f *Fault) apply(w http.ResponseWriter) bool {
	if f.Drop {
		panic(http.ErrAbortHandler)
	}
	if f.RetryAfter > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(f.RetryAfter))
	}
	refuse(w, f.Status, reasons[f.Status], "injected: "+http.StatusText(f.Status))
	return true
}

var reasons = map[int]metav1.StatusReason{
	http.StatusUnauthorized: metav1.StatusReasonUnauthorized, http.StatusForbidden: metav1.StatusReasonForbidden,
	http.StatusGone: metav1.StatusReasonExpired, http.StatusTooManyRequests: metav1.StatusReasonTooManyRequests,
	http.StatusInternalServerError: metav1.StatusReasonInternalError, http.StatusServiceUnavailable: metav1.StatusReasonServiceUnavailable,
}

// Disconnect ends the watches that are open.
func (s *Server) Disconnect() {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.cut)
	s.cut = make(chan struct{})
}

// Restart does what a restart of the API server does to its clients: watches end, and the watch cache is empty, so
// a watch from an older version than now is expired. LIST at an exact version still works: that is etcd's.
func (s *Server) Restart() {
	now := s.timeline.current(s.clock.Now())
	s.mu.Lock()
	s.floor = now
	s.mu.Unlock()
	s.Disconnect()
}

// Compact is a compaction of etcd: nothing before now can be read or watched from.
func (s *Server) Compact() {
	now := s.timeline.current(s.clock.Now())
	s.mu.Lock()
	defer s.mu.Unlock()
	s.floor, s.history = now, now-1
}

// oldest is the version from which a watch can start at the earliest.
func (s *Server) oldest() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.floor
}

func sortedKeys(m map[string]*unstructured.Unstructured) []string {
	return slices.Sorted(maps.Keys(m))
}
