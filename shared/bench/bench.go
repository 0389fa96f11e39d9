// Package bench measures Tidemark beside what a user would do instead, in the same run on the same machine.
//
// `make bench` prints one table; BENCH_OUT=FILE writes it as JSON too, BENCH_QUICK=1 takes less time and less exact
// numbers, BENCH_AREAS=ingest,lookup picks areas. An area is a function in a file of its own, built with the tag bench,
// that returns Rows; all of them are listed in TestBench. The two sides of a Row are measured in interleaved rounds, so
// that a busy machine slows both, and the median of the rounds counts.
package bench

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"text/tabwriter"
	"time"
)

// Row is one measurement beside its baseline.
type Row struct {
	Name         string  `json:"name"`
	Unit         string  `json:"unit"`
	Ours         float64 `json:"ours"`
	Baseline     float64 `json:"baseline"` // 0 where there is nothing to compare with
	BaselineName string  `json:"baselineName"`
	Ratio        float64 `json:"ratio"` // how many times better ours is; 0 without a baseline
}

// MoreIsBetter is a Row whose unit is a rate.
func MoreIsBetter(name, unit string, ours, baseline float64, baselineName string) Row {
	return Row{name, unit, ours, baseline, baselineName, ratio(ours, baseline)}
}

// LessIsBetter is a Row whose unit is a cost.
func LessIsBetter(name, unit string, ours, baseline float64, baselineName string) Row {
	return Row{name, unit, ours, baseline, baselineName, ratio(baseline, ours)}
}

// Plain is a Row without a baseline.
func Plain(name, unit string, ours float64) Row { return Row{Name: name, Unit: unit, Ours: ours} }

func ratio(x, y float64) float64 {
	if x <= 0 || y <= 0 {
		return 0
	}
	return x / y
}

// Quick reports whether BENCH_QUICK asks for less time.
func Quick() bool { return os.Getenv("BENCH_QUICK") != "" && os.Getenv("BENCH_QUICK") != "0" }

// Interleave runs the sides one after another, rounds times, and returns the median of what each of them returned.
func Interleave(rounds int, sides ...func() float64) []float64 {
	results := make([][]float64, len(sides))
	for range rounds {
		for i, side := range sides {
			results[i] = append(results[i], side())
		}
	}
	medians := make([]float64, len(sides))
	for i := range results {
		medians[i] = Median(results[i])
	}
	return medians
}

// Median is the middle value; 0 of none.
func Median(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	middle := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[middle]
	}
	return (sorted[middle-1] + sorted[middle]) / 2
}

// Seconds is d as a number.
func Seconds(d time.Duration) float64 { return d.Seconds() }

// WriteTable prints rows for people.
func WriteTable(w io.Writer, rows []Row) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight|tabwriter.Debug)
	fmt.Fprintln(t, "what\tunit\tTidemark\tinstead\tratio\tinstead is\t")
	for _, r := range rows {
		baseline, ratio := "", ""
		if r.Baseline != 0 {
			baseline = number(r.Baseline)
		}
		if r.Ratio != 0 {
			ratio = fmt.Sprintf("%.1fx", r.Ratio)
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t\n", r.Name, r.Unit, number(r.Ours), baseline, ratio, r.BaselineName)
	}
	return t.Flush()
}

func number(v float64) string {
	switch {
	case v >= 1000:
		return fmt.Sprintf("%.0f", v)
	case v >= 10:
		return fmt.Sprintf("%.1f", v)
	default:
		return fmt.Sprintf("%.3g", v)
	}
}

// WriteJSON writes rows as an array to the file.
func WriteJSON(file string, rows []Row) error {
	text, err := json.MarshalIndent(rows, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(file, append(text, '\n'), 0o644)
}
