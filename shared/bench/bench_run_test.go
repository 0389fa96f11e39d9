//go:build bench

package bench

import (
	"os"
	"slices"
	"strings"
	"testing"
)

// areas are all that is measured, in the order of the table.
var areas = []struct {
	name string
	rows func(t *testing.T) []Row
}{
	{"ingest", ingestRows},
	{"stored", storedRows},
	{"lookup", lookupRows},
	{"coldstart", coldStartRows},
	{"commit", commitRows},
	{"refsweep", refsweepRows},
}

func TestBench(t *testing.T) {
	var wanted []string
	if list := os.Getenv("BENCH_AREAS"); list != "" {
		wanted = strings.Split(list, ",")
	}
	var rows []Row
	for _, area := range areas {
		if len(wanted) > 0 && !slices.Contains(wanted, area.name) {
			continue
		}
		t.Run(area.name, func(t *testing.T) {
			rows = append(rows, area.rows(t)...)
		})
	}
	if len(rows) == 0 {
		t.Fatalf("BENCH_AREAS (%s) names no area", os.Getenv("BENCH_AREAS"))
	}
	if err := WriteTable(os.Stdout, rows); err != nil {
		t.Fatal(err)
	}
	if file := os.Getenv("BENCH_OUT"); file != "" {
		if err := WriteJSON(file, rows); err != nil {
			t.Fatal(err)
		}
	}
}
