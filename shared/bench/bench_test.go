package bench

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestARowSaysHowManyTimesBetterOursIs(t *testing.T) {
	for _, c := range []struct {
		name string
		row  Row
		want float64
	}{
		{"a rate", MoreIsBetter("n", "events/s", 300, 100, "b"), 3},
		{"a cost", LessIsBetter("n", "ms", 2, 8, "b"), 4},
		{"nothing to compare with", Plain("n", "MB", 5), 0},
		{"a baseline that measured nothing", MoreIsBetter("n", "events/s", 300, 0, "b"), 0},
	} {
		if c.row.Ratio != c.want {
			t.Errorf("%s: ratio %v, want %v", c.name, c.row.Ratio, c.want)
		}
	}
}

func TestSidesAreMeasuredInTurnAndTheMedianCounts(t *testing.T) {
	var order []string
	values := map[string][]float64{"ours": {9, 1, 2}, "theirs": {4, 5, 100}}
	side := func(name string) func() float64 {
		return func() float64 {
			order = append(order, name)
			v := values[name][0]
			values[name] = values[name][1:]
			return v
		}
	}
	got := Interleave(3, side("ours"), side("theirs"))
	if got[0] != 2 || got[1] != 5 {
		t.Errorf("medians %v, want 2 and 5", got)
	}
	if s := strings.Join(order, " "); s != "ours theirs ours theirs ours theirs" {
		t.Errorf("order %q", s)
	}
	if m := Median([]float64{4, 1, 3, 2}); m != 2.5 {
		t.Errorf("median of four is %v, want 2.5", m)
	}
}

func TestTheTableIsWrittenForPeopleAndForPrograms(t *testing.T) {
	rows := []Row{MoreIsBetter("ingest, POST of 50", "events/CPU-s", 80000, 4000, "one SET a key"), Plain("size", "MB", 12.5)}
	var table strings.Builder
	if err := WriteTable(&table, rows); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"ingest, POST of 50", "80000", "20.0x", "one SET a key", "12.5"} {
		if !strings.Contains(table.String(), want) {
			t.Errorf("the table lacks %q:\n%s", want, table.String())
		}
	}
	file := filepath.Join(t.TempDir(), "bench.json")
	if err := WriteJSON(file, rows); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var read []map[string]any
	if err := json.Unmarshal(text, &read); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"name", "unit", "ours", "baseline", "baselineName", "ratio"} {
		if _, ok := read[0][name]; !ok {
			t.Errorf("the JSON lacks %q: %s", name, text)
		}
	}
}
