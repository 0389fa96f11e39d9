package kubeaudit_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"

	"github.com/tidemark-dev/tidemark/shared/attribution"
	"github.com/tidemark-dev/tidemark/shared/attribution/kubeaudit"
)

var update = flag.Bool("update", false, "write testdata/corpus.txt anew")

// corpus returns every recorded audit event, by scenario.
func corpus(t *testing.T, each func(scenario string, event *auditv1.Event)) {
	t.Helper()
	files, err := filepath.Glob("../../../events/samples/corpus/audit/*.jsonl")
	if err != nil || len(files) == 0 {
		t.Fatalf("no corpus: %v", err)
	}
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(bytes.NewReader(raw))
		lines.Buffer(nil, len(raw)+1)
		for lines.Scan() {
			var post struct {
				Body auditv1.EventList `json:"body"`
			}
			if err := json.Unmarshal(lines.Bytes(), &post); err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			for i := range post.Body.Items {
				each(strings.TrimSuffix(filepath.Base(file), ".jsonl"), &post.Body.Items[i])
			}
		}
	}
}

var slotNames = []struct {
	slot attribution.Slots
	name string
}{
	{attribution.SlotExact, "exact"}, {attribution.SlotLast, "last"}, {attribution.SlotVersion, "version"},
	{attribution.SlotDeletion, "deletion"}, {attribution.SlotName, "name"}, {attribution.SlotScope, "scope"},
}

// line tells in one line what the rules make of an event.
func line(e *attribution.Event) string {
	object := attribution.GroupResource(e.Object.Group, e.Object.Resource)
	if e.Object.Subresource != "" {
		object += "/" + e.Object.Subresource
	}
	reason := attribution.Admit(e)
	if reason == "" {
		reason = "admitted"
	}
	out := fmt.Sprintf("  %s %s %s by %s: %s", e.Verb, object, e.Object.Name, e.User.Username, reason)
	if reason != "admitted" && reason != attribution.ReasonSubresource {
		return out
	}
	for _, p := range attribution.Prove(nil, e) {
		var slots []string
		for _, s := range slotNames {
			if p.Slots&s.slot != 0 {
				slots = append(slots, s.name)
			}
		}
		short, _, _ := strings.Cut(p.Fact.UID, "-")
		out += fmt.Sprintf("\n    %s: %s is %s", strings.Join(slots, "+"), p.Fact.Name, p.Fact.Author)
		for _, mark := range []struct {
			is   bool
			text string
		}{
			{p.Fact.ImpersonatedBy != "", "through " + p.Fact.ImpersonatedBy},
			{short != "", "uid " + short},
			{p.Fact.ResourceVersion != "", "rv " + p.Fact.ResourceVersion},
			{p.Replaces != "", "replacing " + p.Replaces},
			{p.Deletion != "", "deletion " + string(p.Deletion)},
			{p.Deleting, "deleting"},
			{p.Created, "created"},
			{p.Proven, "proven"},
			{p.Unverified, "unverified"},
			{p.Manager != "", "manager " + p.Manager},
			{p.LabelSelector != "", "selector " + p.LabelSelector},
		} {
			if mark.is {
				out += ", " + mark.text
			}
		}
	}
	return out
}

func TestCorpus(t *testing.T) {
	var got strings.Builder
	last := ""
	corpus(t, func(scenario string, event *auditv1.Event) {
		if scenario == "noise-at-start" || strings.HasPrefix(event.User.Username, "system:") {
			return // the same shapes again and again
		}
		if scenario != last {
			fmt.Fprintln(&got, scenario)
			last = scenario
		}
		e := kubeaudit.Event(event, attribution.DefaultExtraKeys(), "")
		fmt.Fprintln(&got, line(&e))
	})
	const file = "testdata/corpus.txt"
	if *update {
		if err := os.WriteFile(file, []byte(got.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(got.String(), "\n")); diff != "" {
		t.Errorf("what the rules make of the corpus (-want +got)\n%s", diff)
	}
}

// Controllers write hundreds of events; what must hold for each of them holds for all.
func TestCorpusInvariants(t *testing.T) {
	admitted := 0
	corpus(t, func(scenario string, event *auditv1.Event) {
		e := kubeaudit.Event(event, attribution.DefaultExtraKeys(), "")
		proofs := attribution.Prove(nil, &e)
		if attribution.Admit(&e) == "" {
			admitted++
		}
		for _, p := range proofs {
			f := p.Fact
			switch {
			case f.Author == "" || f.GroupResource == "":
				t.Errorf("%s: a proof names %q for %q", scenario, f.Author, f.GroupResource)
			case p.Slots&attribution.SlotExact != 0 && (f.UID == "" || f.ResourceVersion == ""),
				p.Slots&attribution.SlotLast != 0 && f.UID == "",
				p.Slots&attribution.SlotVersion != 0 && (f.ResourceVersion == "" || f.UID != ""),
				p.Slots&(attribution.SlotName|attribution.SlotScope) == attribution.SlotName && f.Name == "":
				t.Errorf("%s: %+v is filed under %b", scenario, f, p.Slots)
			case e.Verb == "delete" && p.Deletion == attribution.DeletionNone:
				t.Errorf("%s: the delete of %s is none", scenario, f.Name)
			case p.Received.After(p.Staged):
				t.Errorf("%s: a request was received after it was answered", scenario)
			}
			if parsed, ok := attribution.ParseRecord(string(attribution.AppendRecord(nil, &p))); !ok || parsed.Fact != f {
				t.Errorf("%s: stored and read again %+v is %+v", scenario, f, parsed.Fact)
			}
			r, ok := attribution.ParseRequest(string(attribution.AppendRequest(nil, &p)))
			if !ok || r.Author != f.Author || r.Replaces != p.Replaces || !r.Received.Equal(p.Received) {
				t.Errorf("%s: stored and read again the request of %s is %+v", scenario, f.Author, r)
			}
		}
	})
	if admitted < 150 {
		t.Errorf("only %d events were admitted", admitted)
	}
}
