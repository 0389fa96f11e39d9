package gitpoll

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Stored is what a Fleet knows of a source.
type Stored struct {
	URL           string // without userinfo and query
	TrackingRef   string
	SHA           string // empty until it was seen once
	FirstObserved time.Time
	Notified      string // the commit last notified
	ObservedAt    time.Time
	Kind          Kind   // of the last failure; empty if the last look succeeded
	Error         string // its text
}

// Snapshot is the state of a fleet as one sweep left it.
type Snapshot struct {
	Sweep   int64 // 0 before the first
	At      time.Time
	Sources map[types.NamespacedName]Stored
}

// Snapshot reads the fleet's state in one round trip.
func (f *Fleet) Snapshot(ctx context.Context) (*Snapshot, error) {
	fields, err := f.client.HGetAll(ctx, f.sourcesKey()).Result()
	if err != nil {
		return nil, fmt.Errorf("read the fleet: %w", err)
	}
	s := &Snapshot{At: parseMillis(fields["@at"]), Sources: make(map[types.NamespacedName]Stored, len(fields))}
	if text, ok := fields["@sweep"]; ok {
		if s.Sweep, err = strconv.ParseInt(text, 10, 64); err != nil {
			return nil, fmt.Errorf("read the fleet: number of the sweep (%.20q) is not a number", text)
		}
	}
	for source, record := range fields {
		if strings.HasPrefix(source, "@") {
			continue
		}
		part := strings.SplitN(record, "\n", 8)
		if len(part) != 8 {
			return nil, fmt.Errorf("read the fleet: record of %s has %d parts, want 8", source, len(part))
		}
		s.Sources[parseSource(source)] = Stored{
			URL:           part[0],
			TrackingRef:   part[1],
			SHA:           part[2],
			FirstObserved: parseMillis(part[3]),
			Notified:      part[4],
			ObservedAt:    parseMillis(part[5]),
			Kind:          Kind(part[6]),
			Error:         part[7],
		}
	}
	return s, nil
}
