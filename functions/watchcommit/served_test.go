package watchcommit

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"

	"sigs.k8s.io/yaml"

	"github.com/tidemark-dev/tidemark/shared/kube"
)

// served is the part of a cluster that a recording has not: GitTargets as custom resources, Secrets of git credentials,
// and what is told about the targets.
type served struct {
	w       *world
	mu      sync.Mutex
	targets []string // the documents, as (*world).target takes them
	secrets map[string]string
	status  map[string]json.RawMessage
	names   map[string]bool // of events
	events  []string        // "Warning Reason target: note", in order

	requests []any  // CommitRequests
	deleted  int    // of them
	answers  string // that were written into the status of the one called asked
	first    func() // is called once, when one of our lists has been sent
}

// serve puts the targets into the cluster, instead of a file. A Secret of namespace tidemark is its name with a password.
func (w *world) serve(secrets map[string]string, targets ...string) *served {
	w.t.Helper()
	s := &served{w: w, targets: targets, secrets: secrets, status: map[string]json.RawMessage{}, names: map[string]bool{}}
	api := httptest.NewServer(s)
	w.t.Cleanup(func() { w.api.Disconnect(); api.CloseClientConnections(); api.Close() })
	w.apiURL, w.targets = api.URL, ""
	return s
}

func (s *served) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	const ours = "/apis/tidemark.dev/v1alpha1/"
	s.mu.Lock()
	defer s.mu.Unlock()
	name, isSecret := strings.CutPrefix(r.URL.Path, "/api/v1/namespaces/tidemark/secrets/")
	password, known := s.secrets[name]
	ourList := r.Method == http.MethodGet && !isSecret
	defer func() {
		if ourList && s.first != nil {
			s.first()
			s.first = nil
		}
	}()
	switch {
	case isSecret && known:
		encoded := base64.StdEncoding.EncodeToString
		reply(rw, http.StatusOK, map[string]any{
			"kind": "Secret", "apiVersion": "v1", "metadata": map[string]any{"namespace": "tidemark", "name": name},
			"data": map[string]any{"username": encoded([]byte("mirror")), "password": encoded([]byte(password))},
		})
	case r.URL.Path == ours+"commitrequests":
		reply(rw, http.StatusOK, map[string]any{"kind": "CommitRequestList", "apiVersion": "tidemark.dev/v1alpha1", "items": append([]any{}, s.requests...)})
	case r.Method == http.MethodPatch && strings.HasSuffix(r.URL.Path, "/commitrequests/asked/status"):
		body, _ := io.ReadAll(r.Body)
		s.answers += string(body)
		reply(rw, http.StatusOK, map[string]any{"kind": "CommitRequest", "apiVersion": "tidemark.dev/v1alpha1", "metadata": map[string]any{"name": "asked"}})
	case r.Method == http.MethodDelete && strings.Contains(r.URL.Path, "/commitrequests/"):
		s.deleted++
		reply(rw, http.StatusOK, map[string]any{"kind": "Status", "apiVersion": "v1", "status": "Success"})
	case r.URL.Path == ours+"gittargets":
		var items []any
		for _, document := range s.targets {
			items = append(items, s.object(document))
		}
		reply(rw, http.StatusOK, map[string]any{"kind": "GitTargetList", "apiVersion": "tidemark.dev/v1alpha1", "items": items})
	case r.Method == http.MethodPatch && strings.HasPrefix(r.URL.Path, ours+"gittargets/"):
		var patch []struct {
			Path  string
			Value json.RawMessage
		}
		if err := json.NewDecoder(r.Body).Decode(&patch); err != nil {
			s.w.t.Errorf("status patch: %v", err)
		}
		name := strings.Split(strings.TrimPrefix(r.URL.Path, ours+"gittargets/"), "/")[0]
		for _, op := range patch {
			if op.Path == "/status" {
				s.status[name] = op.Value
			}
		}
		reply(rw, http.StatusOK, map[string]any{"kind": "GitTarget", "apiVersion": "tidemark.dev/v1alpha1", "metadata": map[string]any{"name": name}})
	case r.Method == http.MethodPost && r.URL.Path == "/apis/events.k8s.io/v1/namespaces/default/events":
		s.event(rw, r)
	default:
		ourList = false
		s.mu.Unlock()
		s.w.api.ServeHTTP(rw, r)
		s.mu.Lock()
	}
}

func (s *served) object(document string) map[string]any {
	var o map[string]any
	if err := yaml.Unmarshal([]byte(strings.ReplaceAll(document, "REPO", s.w.repo.URL)), &o); err != nil {
		s.w.t.Errorf("target: %v", err)
	}
	meta := o["metadata"].(map[string]any)
	o["apiVersion"], o["kind"], meta["uid"] = "tidemark.dev/v1alpha1", "GitTarget", fmt.Sprintf("uid of %s", meta["name"])
	if status := s.status[meta["name"].(string)]; status != nil {
		o["status"] = status
	}
	return o
}

func (s *served) event(rw http.ResponseWriter, r *http.Request) {
	var e struct {
		Metadata           struct{ Name string }
		Type, Reason, Note string
		Regarding          struct{ Name string }
	}
	if err := json.NewDecoder(r.Body).Decode(&e); err != nil {
		s.w.t.Errorf("event: %v", err)
	}
	if s.names[e.Metadata.Name] {
		reply(rw, http.StatusConflict, map[string]any{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "AlreadyExists", "code": 409})
		return
	}
	s.names[e.Metadata.Name] = true
	s.events = append(s.events, fmt.Sprintf("%s %s %s: %s", e.Type, e.Reason, e.Regarding.Name, e.Note))
	reply(rw, http.StatusCreated, map[string]any{"kind": "Event", "apiVersion": "events.k8s.io/v1", "metadata": map[string]any{"name": e.Metadata.Name}})
}

func reply(rw http.ResponseWriter, code int, body map[string]any) {
	rw.Header().Set("Content-Type", "application/json")
	rw.WriteHeader(code)
	_ = json.NewEncoder(rw).Encode(body) // a client that is gone does not mind
}

// condition is a target's condition as "True Reason: message".
func (s *served) condition(target, kind string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var status kube.GitTargetStatus
	if err := json.Unmarshal(s.status[target], &status); err != nil {
		s.w.t.Fatalf("status of %s: %v", target, err)
	}
	for _, c := range status.Conditions {
		if c.Type == kind {
			return fmt.Sprintf("%s %s: %s", c.Status, c.Reason, c.Message)
		}
	}
	return ""
}

// told are the Events so far with a reason.
func (s *served) told(reason string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []string
	for _, e := range s.events {
		if strings.Fields(e)[1] == reason {
			out = append(out, e)
		}
	}
	return out
}
