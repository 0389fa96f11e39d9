package replay

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
)

// Server answers GET requests as the API server of the session did at the clock's time.
type Server struct {
	session  *Session
	clock    *Clock
	timeline timeline
	stores   []*store

	mu       sync.Mutex
	faults   []*Fault
	floor    uint64        // the watch cache knows nothing up to here
	history  uint64        // nothing up to here can be read any more, not even by LIST
	cut      chan struct{} // closed to end the open watches
	requests map[string]int
	resumed  map[string]bool
}

// NewServer serves a session. The clock may stand still.
func NewServer(session *Session, clock *Clock) *Server {
	s := &Server{session: session, clock: clock, timeline: newTimeline(session.Watches), cut: make(chan struct{}), requests: map[string]int{}, resumed: map[string]bool{}}
	for _, w := range session.Watches {
		s.stores = append(s.stores, newStore(w))
	}
	return s
}

// CurrentVersion is the resourceVersion that the cluster has reached.
func (s *Server) CurrentVersion() string { return format(s.timeline.current(s.clock.Now())) }

// Requests counts the requests so far, by verb and resource: "watch configmaps", "list deployments.apps", "get …",
// "discovery", and "other". A watch counts from when it is settled what it begins with.
func (s *Server) Requests() map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make(map[string]int, len(s.requests))
	for k, n := range s.requests {
		out[k] = n
	}
	return out
}

// Resumed says whether a watch of the resource has begun after a version that its client gave.
func (s *Server) Resumed(resource string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.resumed[resource]
}

func (s *Server) count(what string) {
	s.mu.Lock()
	s.requests[what]++
	s.mu.Unlock()
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if f := s.fault(r); f != nil && f.apply(w) {
		return
	}
	if r.Method != http.MethodGet {
		s.count("other")
		refuse(w, http.StatusMethodNotAllowed, metav1.StatusReasonMethodNotAllowed, "a recorded session can not be changed")
		return
	}
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	switch {
	case r.URL.Path == "/readyz" || r.URL.Path == "/healthz" || r.URL.Path == "/livez":
		_, _ = w.Write([]byte("ok"))
	case r.URL.Path == "/version":
		answer(w, map[string]string{"major": "1", "minor": "36", "gitVersion": "v1.36.3", "platform": "linux/amd64"})
	case parts[0] == "api" && len(parts) <= 2, parts[0] == "apis" && len(parts) <= 3:
		s.count("discovery")
		s.discover(w, r, parts)
	default:
		s.collection(w, r, parts)
	}
}

// collection serves /api/v1/… and /apis/GROUP/VERSION/…: namespaces/NS, the resource, a name.
func (s *Server) collection(w http.ResponseWriter, r *http.Request, parts []string) {
	group, version, rest := "", "", []string(nil)
	switch {
	case parts[0] == "api" && len(parts) > 2:
		version, rest = parts[1], parts[2:]
	case parts[0] == "apis" && len(parts) > 3:
		group, version, rest = parts[1], parts[2], parts[3:]
	}
	namespace := ""
	if len(rest) > 2 && rest[0] == "namespaces" {
		namespace, rest = rest[1], rest[2:]
	}
	var found *store
	for _, st := range s.stores {
		if len(rest) > 0 && st.Group == group && st.Version == version && st.Resource == rest[0] && st.ServedFrom <= s.clock.Now() && (namespace == "" || st.Namespaced) {
			found = st
		}
	}
	if found == nil && r.URL.Path == "/api/v1/namespaces/kube-system" { // a recording without namespaces has a cluster too
		s.count("other")
		answer(w, map[string]any{"kind": "Namespace", "apiVersion": "v1", "metadata": map[string]any{"name": "kube-system", "uid": s.session.Name}})
		return
	}
	if found == nil || len(rest) > 2 {
		s.count("other")
		http.Error(w, "404 page not found", http.StatusNotFound)
		return
	}
	q := r.URL.Query()
	f := filter{namespace: namespace, labels: labels.Everything(), fields: fields.Everything()}
	var err error
	if f.labels, err = labels.Parse(q.Get("labelSelector")); err != nil {
		refuse(w, http.StatusBadRequest, metav1.StatusReasonBadRequest, "unable to parse requirement: "+err.Error())
		return
	}
	if f.fields, err = fields.ParseSelector(q.Get("fieldSelector")); err != nil {
		refuse(w, http.StatusBadRequest, metav1.StatusReasonBadRequest, err.Error())
		return
	}
	if rv := q.Get("resourceVersion"); rv != "" {
		if _, err := strconv.ParseUint(rv, 10, 64); err != nil {
			refuse(w, http.StatusInternalServerError, "", fmt.Sprintf("resourceVersion: Invalid value: %q: %v", rv, err))
			return
		}
	}
	name := found.GroupResource().String()
	watching := q.Get("watch") == "true" || q.Get("watch") == "1"
	switch {
	case len(rest) == 2 && !watching:
		s.count("get " + name)
		s.get(w, found, namespace, rest[1])
	case watching:
		s.watch(w, r, found, f)
	default:
		s.count("list " + name)
		s.list(w, r, found, f)
	}
}

func (s *Server) get(w http.ResponseWriter, st *store, namespace, name string) {
	obj, ok := st.state(s.timeline.current(s.clock.Now()))[namespace+"/"+name]
	if !ok {
		refuse(w, http.StatusNotFound, metav1.StatusReasonNotFound, fmt.Sprintf("%s %q not found", st.GroupResource(), name))
		return
	}
	answer(w, obj.Object)
}

func answer(w http.ResponseWriter, body any) { answerAs(w, "application/json", body) }

func answerAs(w http.ResponseWriter, contentType string, body any) {
	w.Header().Set("Content-Type", contentType)
	_ = json.NewEncoder(w).Encode(body) // a client that is gone does not mind
}

func status(code int, reason metav1.StatusReason, message string) metav1.Status {
	return metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
		Status:   metav1.StatusFailure, Message: message, Reason: reason, Code: int32(code),
	}
}

func refuse(w http.ResponseWriter, code int, reason metav1.StatusReason, message string) {
	w.Header().Set("Content-Type", "application/json")
	st := status(code, reason, message)
	if retry := w.Header().Get("Retry-After"); retry != "" {
		seconds, _ := strconv.Atoi(retry)
		st.Details = &metav1.StatusDetails{RetryAfterSeconds: int32(seconds)}
	}
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(st)
}

// reach waits until the cluster has reached a version. A real server gives up after three seconds.
func (s *Server) reach(r *http.Request, rv uint64) bool {
	deadline := time.Now().Add(3 * time.Second)
	for s.timeline.current(s.clock.Now()) < rv {
		if time.Now().After(deadline) || r.Context().Err() != nil {
			return false
		}
		time.Sleep(20 * time.Millisecond)
	}
	return true
}
