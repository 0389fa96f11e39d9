package refsweep

import (
	"cmp"
	"net/http"
	"slices"
	"time"

	"github.com/tidemark-dev/tidemark/shared/gitpoll"
	"github.com/tidemark-dev/tidemark/shared/host"
)

const observationsPath = "/observations"

// Observations is the answer of GET /observations: the fleet as one sweep left it.
type Observations struct {
	Fleet   string        `json:"fleet"`
	Sweep   int64         `json:"sweep"`          // 0 before the first
	Time    *time.Time    `json:"time,omitempty"` // when it was published
	Sources []Observation `json:"sources"`
}

// Observation is one source.
type Observation struct {
	Namespace     string       `json:"namespace"`
	Name          string       `json:"name"`
	URL           string       `json:"url"`
	TrackingRef   string       `json:"trackingRef"`
	SHA           string       `json:"sha,omitempty"`
	FirstObserved *time.Time   `json:"firstObserved,omitempty"`
	ObservedAt    time.Time    `json:"observedAt"`
	Kind          gitpoll.Kind `json:"kind,omitempty"`
	Error         string       `json:"error,omitempty"`
}

// observations answers with the snapshot, or with one source of it: ?namespace=…&name=….
func (f *function) observations(w http.ResponseWriter, r *http.Request) {
	if !f.mayRead(r) {
		w.Header().Set("WWW-Authenticate", "Bearer")
		http.Error(w, "a token is needed", http.StatusUnauthorized)
		return
	}
	snapshot, err := f.deps.Fleet.Snapshot(r.Context())
	if err != nil {
		f.tel.Log.Error("observations cannot be read", "error", err)
		w.Header().Set("Retry-After", "5")
		http.Error(w, "the observations cannot be read now", http.StatusServiceUnavailable)
		return
	}
	answer := Observations{Fleet: f.cfg.Fleet, Sweep: snapshot.Sweep, Time: instant(snapshot.At), Sources: []Observation{}}
	namespace, name := r.URL.Query().Get("namespace"), r.URL.Query().Get("name")
	for source, s := range snapshot.Sources {
		if namespace != "" && namespace != source.Namespace || name != "" && name != source.Name {
			continue
		}
		answer.Sources = append(answer.Sources, Observation{
			Namespace: source.Namespace, Name: source.Name, URL: s.URL, TrackingRef: s.TrackingRef, SHA: s.SHA,
			FirstObserved: instant(s.FirstObserved), ObservedAt: s.ObservedAt, Kind: s.Kind, Error: s.Error,
		})
	}
	slices.SortFunc(answer.Sources, func(a, b Observation) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	w.Header().Set("Cache-Control", "no-store")
	_ = writeJSON(w, http.StatusOK, answer) // a reader that is gone does not mind
}

func instant(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

// mayRead says whether the caller may see names: it holds READ_TOKEN, or the platform vouches for it, or no token is
// configured.
func (f *function) mayRead(r *http.Request) bool {
	may, err := host.MayRead(r, f.cfg.ReadToken)
	if err != nil {
		f.tel.Log.Error("READ_TOKEN cannot be read", "error", err)
	}
	return may
}
