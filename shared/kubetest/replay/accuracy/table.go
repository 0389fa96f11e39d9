package accuracy

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"text/tabwriter"
)

// Tally counts verdicts.
type Tally [verdicts]int

// Total is the tally of all outcomes.
func Total(outcomes []Outcome) Tally {
	var t Tally
	for i := range outcomes {
		t[outcomes[i].Verdict()]++
	}
	return t
}

// String is the closing line.
func (t Tally) String() string {
	return fmt.Sprintf("accuracy: %d right, %d unresolved though knowable, %d wrong, %d rightly unresolved", t[Right], t[Unresolved], t[Wrong], t[RightlyUnresolved])
}

// Write prints the outcomes by kind of change and class of truth, then those that are not right.
func Write(w io.Writer, outcomes []Outcome) error {
	rows := map[string]*Tally{}
	for i := range outcomes {
		o := &outcomes[i]
		row := o.Truth.Why + "\t" + o.Truth.Knowable
		if rows[row] == nil {
			rows[row] = &Tally{}
		}
		rows[row][o.Verdict()]++
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "change\tknowable\tright\tunresolved\twrong\trightly unresolved")
	for _, row := range slices.Sorted(maps.Keys(rows)) {
		t := rows[row]
		fmt.Fprintf(table, "%s\t%d\t%d\t%d\t%d\n", row, t[Right], t[Unresolved], t[Wrong], t[RightlyUnresolved])
	}
	if err := table.Flush(); err != nil {
		return err
	}
	for i := range outcomes {
		if o := &outcomes[i]; o.Verdict() == Unresolved || o.Verdict() == Wrong {
			if _, err := fmt.Fprintln(w, o); err != nil {
				return err
			}
		}
	}
	return nil
}

// String tells one outcome in a line.
func (o *Outcome) String() string {
	t, found := &o.Truth, "nobody ("+string(o.Found.Why)+")"
	if f := &o.Found.Fact; f.Author != "" {
		found = f.Author + " (" + string(o.Found.Result)
		if f.Tier != "" {
			found += " " + string(f.Tier)
		}
		found += ")"
	}
	word := map[Verdict]string{Right: "right", Unresolved: "unresolved", Wrong: "WRONG", RightlyUnresolved: "rightly unresolved"}[o.Verdict()]
	want := t.Owner()
	if want == "" {
		want = "nobody"
	}
	return fmt.Sprintf("%s: %s %s %s/%s rv %s (%s, %s) is %s's, found %s", word, t.Type, t.Resource, t.Namespace, t.Name, t.RV, t.Why, t.Knowable, want, found)
}
