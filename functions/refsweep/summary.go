package refsweep

import (
	"cmp"
	"slices"
	"time"

	"github.com/tidemark-dev/tidemark/shared/gitpoll"
)

// slowest is how many hosts a summary names.
const slowest = 5

// Summary is the answer to a tick.
type Summary struct {
	Fleet        string               `json:"fleet"`
	Sweep        int64                `json:"sweep"`
	TookMS       int64                `json:"tookMs"`
	Targets      int                  `json:"targets"`
	Listed       int                  `json:"listed"`           // with a commit
	Failed       map[gitpoll.Kind]int `json:"failed,omitempty"` // by kind; suspended and not-reached ones too
	Dropped      int                  `json:"dropped,omitempty"`
	Repointed    int                  `json:"repointed,omitempty"` // while they were being listed
	Moved        []Moved              `json:"moved"`
	Appeared     []Moved              `json:"appeared,omitempty"` // seen for the first time
	MoreMoves    int                  `json:"moreMoves,omitempty"`
	SlowestHosts []HostTime           `json:"slowestHosts,omitempty"`
	Notified     bool                 `json:"notified"`
}

// Moved is a source at a commit that was not notified before.
type Moved struct {
	Namespace     string    `json:"namespace"`
	Name          string    `json:"name"`
	URL           string    `json:"url"`
	TrackingRef   string    `json:"trackingRef"`
	Previous      string    `json:"previous,omitempty"`
	SHA           string    `json:"sha"`
	FirstObserved time.Time `json:"firstObserved"`
}

// HostTime is what a host took.
type HostTime struct {
	Host     string `json:"host"`
	Listings int    `json:"listings"`
	MaxMS    int64  `json:"maxMs"`
}

func summarize(fleet string, number int64, results []gitpoll.Result, p *gitpoll.Publication, took time.Duration) *Summary {
	s := &Summary{
		Fleet: fleet, Sweep: number, TookMS: took.Milliseconds(), Targets: len(results),
		Failed: map[gitpoll.Kind]int{}, Dropped: p.Dropped, Repointed: p.Repointed, MoreMoves: p.AllMoves - len(p.Moves),
	}
	hosts := map[string]*HostTime{}
	for _, r := range results {
		if kind := gitpoll.KindOf(r.Err); kind != gitpoll.KindNone {
			s.Failed[kind]++
		} else {
			s.Listed++
		}
		if r.Host == "" {
			continue
		}
		h, ok := hosts[r.Host]
		if !ok {
			h = &HostTime{Host: r.Host}
			hosts[r.Host] = h
		}
		h.Listings++
		h.MaxMS = max(h.MaxMS, r.Took.Milliseconds())
	}
	s.Moved, s.Appeared = split(p.Moves)
	for _, h := range hosts {
		s.SlowestHosts = append(s.SlowestHosts, *h)
	}
	slices.SortFunc(s.SlowestHosts, func(a, b HostTime) int {
		return cmp.Or(cmp.Compare(b.MaxMS, a.MaxMS), cmp.Compare(a.Host, b.Host))
	})
	s.SlowestHosts = s.SlowestHosts[:min(slowest, len(s.SlowestHosts))]
	return s
}

// split tells the sources that moved from those that are seen for the first time, each in the order of their names.
func split(moves []gitpoll.Move) (moved, appeared []Moved) {
	moved = []Moved{}
	for _, m := range moves {
		one := Moved{
			Namespace: m.Source.Namespace, Name: m.Source.Name, URL: m.URL, TrackingRef: m.TrackingRef,
			Previous: m.Previous, SHA: m.SHA, FirstObserved: m.FirstObserved,
		}
		if m.Previous == "" {
			appeared = append(appeared, one)
		} else {
			moved = append(moved, one)
		}
	}
	byName := func(a, b Moved) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	}
	slices.SortFunc(moved, byName)
	slices.SortFunc(appeared, byName)
	return moved, appeared
}

// anonymousSummary is a Summary for callers who may not read names.
type anonymousSummary struct {
	Sweep    int64 `json:"sweep"`
	TookMS   int64 `json:"tookMs"`
	Targets  int   `json:"targets"`
	Listed   int   `json:"listed"`
	Moved    int   `json:"moved"`
	Notified bool  `json:"notified"`
}

func (s *Summary) withoutNames() anonymousSummary {
	return anonymousSummary{s.Sweep, s.TookMS, s.Targets, s.Listed, len(s.Moved), s.Notified}
}
