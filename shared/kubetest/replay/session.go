// Package replay plays a recorded session of a cluster: Server answers as its API server did (discovery, list,
// watch), and Player sends the audit batches and admission reviews that it sent, at the times it did. Both follow
// one Clock, which runs, faster than it did if wanted, or is moved by hand.
//
// It is made for programs that must not know the difference, so it speaks the protocol only: the errors, bookmarks
// and selectors of a real API server, and on demand its bad moments (Server.Inject, Restart, Disconnect).
package replay

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sort"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Session is what was recorded, in the order in which it arrived.
type Session struct {
	Name      string
	Watches   []*Watch
	Audit     []AuditPost
	Admission []Review
	Truth     []Truth
	Steps     []Step
}

// Watch is the recorded watch of one resource.
type Watch struct {
	schema.GroupVersionResource
	Kind       string
	Namespaced bool
	Initial    []Event // the objects of the initial events
	BaseRV     string  // of the bookmark that ends them
	Live       []Event // what came after, bookmarks too
	ServedFrom time.Duration
}

// Event is one watch event. Object keeps integers as int64.
type Event struct {
	At     time.Duration
	Type   string
	Object *unstructured.Unstructured
}

// AuditPost is one POST to the audit webhook.
type AuditPost struct {
	At       time.Duration
	Route    string
	Body     json.RawMessage // an EventList
	Answered int             // what the receiver of the recording said; 0 is 200
}

// Review is one POST to the admission webhook.
type Review struct {
	At   time.Duration
	Body json.RawMessage // an AdmissionReview
}

// Truth says who caused a live watch event.
type Truth struct {
	Resource  string `json:"resource"`
	Group     string `json:"group"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	UID       string `json:"uid"`
	RV        string `json:"rv"`
	Type      string `json:"type"`
	Actor     string `json:"actor"`     // "" when nobody's request did
	Initiator string `json:"initiator"` // who set it in motion, where that was somebody else
	Why       string `json:"why"`
	Knowable  string `json:"knowable"`
	Source    string `json:"source"`
	Step      string `json:"step"`
}

// Owner is whose the change is in a history: the initiator's where there is one.
func (t Truth) Owner() string {
	if t.Initiator != "" {
		return t.Initiator
	}
	return t.Actor
}

// Step is one request of the scenario that was recorded.
type Step struct {
	At    int64  `json:"t"` // milliseconds
	Name  string `json:"step"`
	Actor string `json:"actor"`
	Say   string `json:"say"`
	Code  int    `json:"code"`
}

const (
	initialEventsEnd = "k8s.io/initial-events-end"
	bookmark         = "BOOKMARK"
	// settlingTime is how long a recording takes to open its watches; one that begins later is of a resource that
	// was not served before.
	settlingTime = 2 * time.Second
)

// Load reads a session's folder. truth.jsonl, steps.jsonl and admission.jsonl may be missing.
func Load(dir string) (*Session, error) {
	s := &Session{Name: filepath.Base(filepath.Clean(dir))}
	files, err := filepath.Glob(filepath.Join(dir, "watch", "*.jsonl"))
	if err != nil {
		return nil, err
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("session %s: no watch/*.jsonl", dir)
	}
	sort.Strings(files)
	for _, file := range files {
		w, err := loadWatch(file)
		if err != nil {
			return nil, err
		}
		s.Watches = append(s.Watches, w)
	}
	err = errors.Join(
		lines(filepath.Join(dir, "audit.jsonl"), false, func(line []byte) error {
			var p struct {
				T        int64           `json:"t"`
				Route    string          `json:"route"`
				Body     json.RawMessage `json:"body"`
				Answered int             `json:"answered"`
			}
			err := json.Unmarshal(line, &p)
			s.Audit = append(s.Audit, AuditPost{At: millis(p.T), Route: p.Route, Body: p.Body, Answered: p.Answered})
			return err
		}),
		lines(filepath.Join(dir, "admission.jsonl"), true, func(line []byte) error {
			var r struct {
				T    int64           `json:"t"`
				Body json.RawMessage `json:"body"`
			}
			err := json.Unmarshal(line, &r)
			s.Admission = append(s.Admission, Review{At: millis(r.T), Body: r.Body})
			return err
		}),
		lines(filepath.Join(dir, "truth.jsonl"), true, func(line []byte) error {
			var t Truth
			err := json.Unmarshal(line, &t)
			s.Truth = append(s.Truth, t)
			return err
		}),
		lines(filepath.Join(dir, "steps.jsonl"), true, func(line []byte) error {
			var st Step
			err := json.Unmarshal(line, &st)
			s.Steps = append(s.Steps, st)
			return err
		}),
	)
	if err != nil {
		return nil, err
	}
	sort.SliceStable(s.Audit, func(i, j int) bool { return s.Audit[i].At < s.Audit[j].At })
	sort.SliceStable(s.Admission, func(i, j int) bool { return s.Admission[i].At < s.Admission[j].At })
	return s, nil
}

func loadWatch(file string) (*Watch, error) {
	group, resource, ok := strings.Cut(strings.TrimSuffix(filepath.Base(file), ".jsonl"), "_")
	if !ok {
		return nil, fmt.Errorf("%s: want a name like apps_deployments.jsonl", file)
	}
	if group == "core" {
		group = ""
	}
	w := &Watch{Namespaced: !clusterScoped[schema.GroupResource{Group: group, Resource: resource}.String()]}
	w.Group, w.Resource = group, resource
	first := true
	err := lines(file, false, func(line []byte) error {
		var e struct {
			T     int64 `json:"t"`
			Event struct {
				Type   string                    `json:"type"`
				Object unstructured.Unstructured `json:"object"`
			} `json:"event"`
		}
		if err := json.Unmarshal(line, &e); err != nil {
			return err
		}
		ev := Event{At: millis(e.T), Type: e.Event.Type, Object: &e.Event.Object}
		if first && ev.At > settlingTime {
			w.ServedFrom = ev.At
		}
		first = false
		w.Version, w.Kind = ev.Object.GroupVersionKind().Version, ev.Object.GetKind()
		switch {
		case w.BaseRV == "" && ev.Object.GetAnnotations()[initialEventsEnd] == "true":
			w.BaseRV = ev.Object.GetResourceVersion()
		case w.BaseRV == "":
			w.Initial = append(w.Initial, ev)
		default:
			w.Live = append(w.Live, ev)
		}
		if ev.Type != bookmark && ev.Object.GetNamespace() == "" {
			w.Namespaced = false
		}
		return nil
	})
	if err == nil && w.BaseRV == "" {
		err = fmt.Errorf("%s: no bookmark with %s", file, initialEventsEnd)
	}
	return w, err
}

// clusterScoped are the resources that have no namespace, for recordings in which none of them appears.
var clusterScoped = map[string]bool{
	"namespaces": true, "nodes": true, "persistentvolumes": true, "storageclasses.storage.k8s.io": true,
	"clusterroles.rbac.authorization.k8s.io": true, "clusterrolebindings.rbac.authorization.k8s.io": true,
	"customresourcedefinitions.apiextensions.k8s.io": true, "priorityclasses.scheduling.k8s.io": true, "ingressclasses.networking.k8s.io": true,
	"validatingwebhookconfigurations.admissionregistration.k8s.io": true, "mutatingwebhookconfigurations.admissionregistration.k8s.io": true,
	"apiservices.apiregistration.k8s.io": true, "runtimeclasses.node.k8s.io": true, "csidrivers.storage.k8s.io": true,
}

// Begin is the time by which the initial events of the recording have arrived.
func (s *Session) Begin() time.Duration {
	var at time.Duration
	for _, w := range s.Watches {
		for _, ev := range w.Initial {
			if w.ServedFrom == 0 {
				at = max(at, ev.At)
			}
		}
	}
	return at
}

// End is the time of the last thing that was recorded.
func (s *Session) End() time.Duration {
	var at time.Duration
	for _, w := range s.Watches {
		at = max(at, w.ServedFrom)
		for _, ev := range w.Live {
			at = max(at, ev.At)
		}
	}
	for _, p := range s.Audit {
		at = max(at, p.At)
	}
	for _, r := range s.Admission {
		at = max(at, r.At)
	}
	return at
}

func millis(t int64) time.Duration { return time.Duration(t) * time.Millisecond }

// version is a resourceVersion as a number: those of one recording come from one store and compare. What is no
// number is 0, older than everything.
func version(rv string) uint64 {
	n, _ := strconv.ParseUint(rv, 10, 64)
	return n
}

// lines calls read with each line of a file.
func lines(file string, optional bool, read func([]byte) error) error {
	f, err := os.Open(file)
	if optional && errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	in := bufio.NewReader(f)
	for n := 1; ; n++ {
		line, err := in.ReadBytes('\n')
		if len(line) > 1 {
			if err := read(line); err != nil {
				return fmt.Errorf("%s:%d: %w", file, n, err)
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
	}
}
