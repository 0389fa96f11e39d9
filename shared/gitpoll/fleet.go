package gitpoll

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tidemark-dev/tidemark/shared/giturl"
	"github.com/tidemark-dev/tidemark/shared/gitwire"
)

const (
	// fleetTTL is how long the state outlives the last sweep.
	fleetTTL = 30 * 24 * time.Hour
	// knownTTL is how long it is remembered that a server is an old one: then the one request is tried again.
	knownTTL = 24 * time.Hour
	// maxErrorText bounds the text of an error that is stored.
	maxErrorText = 300
)

var (
	// ErrSweepRunning is a sweep that did not begin because another is running.
	ErrSweepRunning = errors.New("another sweep of this fleet is running")
	// ErrSuperseded is a sweep that published nothing because a newer one has begun.
	ErrSuperseded = errors.New("a newer sweep of this fleet has begun")
)

// Fleet keeps the state of a set of sources in Redis: per source its commit, since when, how the last look went, and
// which commit was notified last. Sweeps of many processes may overlap; only the newest publishes, in one step, and
// readers see one sweep or the next, never a mixture.
type Fleet struct {
	client       redis.UniversalClient
	prefix, name string
}

// NewFleet returns the fleet of a name, within a key prefix.
func NewFleet(client redis.UniversalClient, prefix, name string) (*Fleet, error) {
	if err := checkFleetName(name); err != nil {
		return nil, err
	}
	return &Fleet{client: client, prefix: prefix, name: name}, nil
}

// FleetSweep is one sweep of a Fleet: begin, publish, notify, end.
type FleetSweep struct {
	fleet *Fleet
	// Number counts the fleet's sweeps; it is the fencing token too.
	Number int64
	// Known and Throttles are what earlier sweeps learned.
	Known     map[string]gitwire.Knowledge
	Throttles *Throttles

	expires map[string]int64 // of Known, in ms
}

// Begin numbers a sweep that may take as long as lease. The error is ErrSweepRunning while another one runs, unless
// that has taken longer than it said.
func (f *Fleet) Begin(ctx context.Context, lease time.Duration) (*FleetSweep, error) {
	keys := []string{f.leaseKey(), f.fenceKey(), f.knownKey(), f.hostsKey()}
	reply, err := beginSweep.Eval(ctx, f.client, keys, lease.Milliseconds(), int(fleetTTL.Seconds())).Slice()
	if err != nil {
		return nil, fmt.Errorf("begin a sweep: %w", err)
	}
	if len(reply) != 3 {
		return nil, fmt.Errorf("begin a sweep: unexpected answer of %d parts", len(reply))
	}
	number, _ := reply[0].(int64)
	if number == 0 {
		return nil, ErrSweepRunning
	}
	s := &FleetSweep{fleet: f, Number: number, Known: map[string]gitwire.Knowledge{}, expires: map[string]int64{}}
	now := time.Now().UnixMilli()
	for key, value := range pairs(reply[1]) {
		if k, expires, ok := parseKnown(value); ok && expires > now {
			s.Known[key], s.expires[key] = k, expires
		}
	}
	hosts := map[string]Throttle{}
	for host, value := range pairs(reply[2]) {
		if t, ok := parseThrottle(value); ok {
			hosts[host] = t
		}
	}
	s.Throttles = NewThrottles(hosts)
	return s, nil
}

// Move is a source whose commit has not been notified yet.
type Move struct {
	Source        types.NamespacedName
	URL           string // without userinfo and query
	TrackingRef   string
	Previous, SHA string // Previous is the commit last notified; empty if none was
	FirstObserved time.Time
}

// Publication is what publishing a sweep came to.
type Publication struct {
	Moves     []Move // at most as many as asked for
	AllMoves  int
	Dropped   int // sources that are no longer targets
	Repointed int // results that were left out because their target had been re-pointed or removed meanwhile
}

// Publish replaces the fleet's state by results, which hold every target of the sweep. current are the targets as
// they are now: a result whose target has another URL or tracking ref meanwhile, or is gone, is dropped with its source.
// learned is what later sweeps should know. At most maxMoves moves are returned; the others come with the next sweep.
// Nothing is written if ctx has ended, or if a newer sweep has begun, which is ErrSuperseded.
func (s *FleetSweep) Publish(ctx context.Context, results []Result, current []Target, learned map[string]gitwire.Knowledge, maxMoves int) (*Publication, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("publish a sweep: %w", err)
	}
	live := make(map[types.NamespacedName]plumbing, len(current))
	for _, t := range current {
		live[t.Source] = plumbingOf(t)
	}
	now := time.Now()
	kept := make([]any, 0, len(results))
	for _, r := range results {
		if p, ok := live[r.Target.Source]; ok && p == plumbingOf(r.Target) {
			kept = append(kept, resultRecord(r))
		}
	}
	known, hosts := s.knownPairs(learned, now), throttlePairs(s.Throttles, now)
	f := s.fleet
	args := make([]any, 0, 7+len(kept)+len(known)+len(hosts))
	args = append(args, s.Number, now.UnixMilli(), int(fleetTTL.Seconds()), maxMoves, len(kept), len(known)/2, len(hosts)/2)
	args = append(append(append(args, kept...), known...), hosts...)
	keys := []string{f.fenceKey(), f.sourcesKey(), f.knownKey(), f.hostsKey(), f.leaseKey()}
	reply, err := publishSweep.Eval(ctx, f.client, keys, args...).Slice()
	if err != nil {
		return nil, fmt.Errorf("publish a sweep: %w", err)
	}
	if len(reply) < 3 {
		return nil, fmt.Errorf("publish a sweep: unexpected answer of %d parts", len(reply))
	}
	if done, _ := reply[0].(int64); done != 1 {
		return nil, ErrSuperseded
	}
	out := &Publication{Repointed: len(results) - len(kept)}
	all, _ := reply[1].(int64)
	dropped, _ := reply[2].(int64)
	out.AllMoves, out.Dropped = int(all), int(dropped)
	for part := range slices.Chunk(reply[3:], 6) {
		if text, ok := texts(part, 6); ok {
			out.Moves = append(out.Moves, Move{parseSource(text[0]), text[1], text[2], text[3], text[4], parseMillis(text[5])})
		}
	}
	return out, nil
}

// End notes that the moves were notified and lets the next sweep begin. A crash before it makes the next sweep notify
// them again.
func (s *FleetSweep) End(ctx context.Context, notified []Move) error {
	args := make([]any, 0, 1+2*len(notified))
	args = append(args, s.Number)
	for _, m := range notified {
		args = append(args, m.Source.String(), m.SHA)
	}
	if err := endSweep.Eval(ctx, s.fleet.client, []string{s.fleet.sourcesKey(), s.fleet.leaseKey()}, args...).Err(); err != nil {
		return fmt.Errorf("end a sweep: %w", err)
	}
	return nil
}

// resultRecord is what publishSweep reads of a result.
func resultRecord(r Result) string {
	text := ""
	if r.Err != nil {
		text = oneLine(r.Err.Error())
	}
	return strings.Join([]string{r.Target.Source.String(), storedURL(r.Target.URL), oneLine(r.Target.TrackingRef), r.SHA,
		strconv.FormatInt(r.At.UnixMilli(), 10), string(KindOf(r.Err)), text}, "\n")
}

// storedURL is what is stored of a URL: neither userinfo nor query.
func storedURL(raw string) string {
	ep, err := giturl.Parse(raw)
	if err != nil {
		return "invalid"
	}
	return ep.String()
}

func oneLine(s string) string {
	s = strings.Map(func(r rune) rune {
		if r < 0x20 {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, "?"))
	if len(s) > maxErrorText {
		s = strings.ToValidUTF8(s[:maxErrorText], "") + "…"
	}
	return s
}

func (s *FleetSweep) knownPairs(learned map[string]gitwire.Knowledge, now time.Time) []any {
	var out []any
	for key, k := range learned {
		expires := s.expires[key]
		if s.Known[key] != k || expires <= now.UnixMilli() {
			expires = now.Add(knownTTL).UnixMilli()
		}
		format := k.ObjectFormat
		if format == "" {
			format = "-"
		}
		out = append(out, key, fmt.Sprintf("%d %s %d", k.Protocol, format, expires))
	}
	return out
}

func parseKnown(value string) (k gitwire.Knowledge, expires int64, ok bool) {
	n, err := fmt.Sscanf(value, "%d %s %d", &k.Protocol, &k.ObjectFormat, &expires)
	if k.ObjectFormat == "-" {
		k.ObjectFormat = ""
	}
	return k, expires, err == nil && n == 3
}

// throttlePairs leaves out what is long over: a host that has not been asked since starts anew.
func throttlePairs(t *Throttles, now time.Time) []any {
	var out []any
	for host, h := range t.Hosts() {
		if now.Before(h.Until.Add(maxPause)) {
			out = append(out, host, fmt.Sprintf("%d %d", h.Until.UnixMilli(), h.Strikes))
		}
	}
	return out
}

func parseThrottle(value string) (Throttle, bool) {
	var until int64
	var t Throttle
	n, err := fmt.Sscanf(value, "%d %d", &until, &t.Strikes)
	t.Until = time.UnixMilli(until)
	return t, err == nil && n == 2
}

// pairs reads the flat list that HGETALL is within a script's answer.
func pairs(reply any) map[string]string {
	list, _ := reply.([]any)
	out := make(map[string]string, len(list)/2)
	for part := range slices.Chunk(list, 2) {
		if text, ok := texts(part, 2); ok {
			out[text[0]] = text[1]
		}
	}
	return out
}

func texts(part []any, n int) ([]string, bool) {
	if len(part) != n {
		return nil, false
	}
	out := make([]string, n)
	for i, p := range part {
		var ok bool
		if out[i], ok = p.(string); !ok {
			return nil, false
		}
	}
	return out, true
}

func parseSource(text string) types.NamespacedName {
	namespace, name, ok := strings.Cut(text, "/")
	if !ok {
		return types.NamespacedName{Name: text}
	}
	return types.NamespacedName{Namespace: namespace, Name: name}
}

func parseMillis(text string) time.Time {
	ms, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}
