package kube

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

func TestNextStatus(t *testing.T) {
	boats := &NotServed{Resource: schema.GroupResource{Group: "example.com", Resource: "boats"}, Why: "the API server does not serve it"}
	tests := []struct {
		name          string
		report        Report
		status        metav1.ConditionStatus
		reason, words string
	}{
		{"all is well", Report{}, metav1.ConditionTrue, ReasonMirroring, "branch main"},
		{"a hook's words reach the person", Report{Problem: &Problem{ReasonBranchProtected, "push to main: the server says: pushes need a review"}},
			metav1.ConditionFalse, ReasonBranchProtected, "pushes need a review"},
		{"an unserved resource is a problem of its own", Report{NotServed: []*NotServed{boats}}, metav1.ConditionFalse, ReasonResourceNotServed, "boats.example.com: the API server does not serve it. Everything else is mirrored"},
		{"a forbidden resource and an unserved one are told together", Report{NotServed: []*NotServed{boats}, Problem: &Problem{ReasonResourceForbidden, "pods: forbidden"}}, metav1.ConditionFalse, ReasonResourceForbidden, "pods: forbidden; boats.example.com: the API server does not serve it"},
		{"a graver problem comes first", Report{NotServed: []*NotServed{boats}, Problem: &Problem{ReasonCredentialsRefused, "401"}}, metav1.ConditionFalse, ReasonCredentialsRefused, "401"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			target := validTarget()
			target.Generation = 4
			got := nextStatus(target, tc.report, noon)
			ready := meta.FindStatusCondition(got.Conditions, ConditionReady)
			if ready.Status != tc.status || ready.Reason != tc.reason || !strings.Contains(ready.Message, tc.words) {
				t.Errorf("got %s %s %q, want %s %s %q", ready.Status, ready.Reason, ready.Message, tc.status, tc.reason, tc.words)
			}
			if got.ObservedGeneration != 4 || ready.ObservedGeneration != 4 {
				t.Errorf("observed generation %d and %d, want 4", got.ObservedGeneration, ready.ObservedGeneration)
			}
		})
	}
}

func TestNextStatusKeepsWhatTheDrainDidNotLearn(t *testing.T) {
	target := validTarget()
	target.Status = nextStatus(target, Report{Attribution: ReasonNoFacts, LastCommit: &LastCommit{SHA: "4be1c2e", Time: metav1.NewTime(noon)}}, noon)
	later := nextStatus(target, Report{}, noon.Add(time.Hour))
	if later.LastCommit == nil || later.LastCommit.SHA != "4be1c2e" {
		t.Errorf("the last commit is lost: %+v", later.LastCommit)
	}
	attributed := meta.FindStatusCondition(later.Conditions, ConditionAttributed)
	if attributed == nil || attributed.Reason != ReasonNoFacts || !strings.Contains(attributed.Message, "no audit fact has ever arrived on route default") {
		t.Errorf("the condition Attributed is lost: %+v", attributed)
	}
	ready := meta.FindStatusCondition(later.Conditions, ConditionReady)
	if !ready.LastTransitionTime.Time.Equal(noon) {
		t.Errorf("Ready turned at %s although it did not turn", ready.LastTransitionTime)
	}
}

func TestSecretsSkippedIsSaidAndTakenBack(t *testing.T) {
	target := validTarget()
	target.Spec.Resources = append(target.Spec.Resources, ResourceRule{Resource: "secrets"})
	target.Status = nextStatus(target, Report{}, noon)
	if !meta.IsStatusConditionTrue(target.Status.Conditions, ConditionSecretsSkipped) {
		t.Error("the status does not say that Secrets are skipped")
	}
	target.Spec.Resources = target.Spec.Resources[:1]
	if after := nextStatus(target, Report{}, noon); meta.FindStatusCondition(after.Conditions, ConditionSecretsSkipped) != nil {
		t.Error("the condition stays although no rule names Secrets")
	}
}

func TestNeedsWrite(t *testing.T) {
	at := func(cursor string, when time.Time, waiting int64) GitTargetStatus {
		stamp := metav1.NewTime(when)
		return GitTargetStatus{Shards: []ShardStatus{{Resource: "configmaps", Cursor: cursor, CursorTime: &stamp, Waiting: waiting, Lag: &metav1.Duration{Duration: when.Sub(noon)}}}}
	}
	tests := []struct {
		name   string
		before GitTargetStatus
		after  GitTargetStatus
		want   bool
	}{
		{"the first status is written", GitTargetStatus{}, at("7", noon, 0), true},
		{"newer times alone wait", at("7", noon, 0), at("7", noon.Add(time.Second), 0), false},
		{"but not forever", at("7", noon, 0), at("7", noon.Add(statusRefresh), 0), true},
		{"a moved cursor is written", at("7", noon, 0), at("8", noon.Add(time.Second), 0), true},
		{"a change that waits is written", at("7", noon, 0), at("7", noon.Add(time.Second), 1), true},
		{"nothing to say", GitTargetStatus{}, GitTargetStatus{}, false},
	}
	for _, tc := range tests {
		now := noon
		if len(tc.after.Shards) > 0 {
			now = tc.after.Shards[0].CursorTime.Time
		}
		if got := needsWrite(tc.before, tc.after, now); got != tc.want {
			t.Errorf("%s: got %v, want %v", tc.name, got, tc.want)
		}
	}
}

func TestMessagesOfOthersAreCut(t *testing.T) {
	got := cut(strings.Repeat("日", 2000) + "\xff")
	if len(got) > maxMessage+3 || !utf8.ValidString(got) || !strings.HasSuffix(got, "日…") {
		t.Errorf("got %d bytes, valid %v, end %q", len(got), utf8.ValidString(got), got[len(got)-10:])
	}
	if got := cut("as\xffis"); got != "as\uFFFDis" {
		t.Errorf("got %q", got)
	}
}

func TestReadyChanges(t *testing.T) {
	target := &GitTarget{ObjectMeta: metav1.ObjectMeta{Name: "prod", Generation: 2}}
	well, refused := Report{}, Report{Problem: &Problem{Reason: ReasonCredentialsRefused, Message: "401"}}
	says := func(report Report, generation int64) {
		target.Generation = generation
		target.Status = nextStatus(target, report, time.Unix(0, 0))
		target.Generation = 2
	}
	for name, c := range map[string]struct {
		before     *Report
		generation int64
		now        Report
		want       bool
	}{
		"nothing was said yet":    {nil, 2, well, true},
		"it is as it was":         {&well, 2, well, false},
		"it was of an older spec": {&well, 1, well, true},
		"it has become ready":     {&refused, 2, well, true},
		"it is ready no longer":   {&well, 2, refused, true},
		"the same trouble":        {&refused, 2, refused, false},
		"another trouble":         {&refused, 2, Report{NotServed: []*NotServed{{}}}, true},
		"the same in other words": {&refused, 2, Report{Problem: &Problem{Reason: ReasonCredentialsRefused, Message: "403"}}, false},
	} {
		target.Status = GitTargetStatus{}
		if c.before != nil {
			says(*c.before, c.generation)
		}
		if got := ReadyChanges(target, c.now); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

func TestASecondReportOfADrainComparesWithTheFirst(t *testing.T) {
	writes := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		writes++
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"apiVersion":"tidemark.dev/v1alpha1","kind":"GitTarget","metadata":{"name":"prod"}}`)
	}))
	defer server.Close()
	client, err := NewClient(&rest.Config{Host: server.URL}, "watchcommit")
	if err != nil {
		t.Fatal(err)
	}
	target := &GitTarget{ObjectMeta: metav1.ObjectMeta{Name: "prod", UID: "u", Generation: 1}}
	for range 2 {
		if err := client.ReportTarget(context.Background(), target, Report{}); err != nil {
			t.Fatal(err)
		}
	}
	if writes != 1 {
		t.Errorf("%d writes, want one: the second report says what the first did", writes)
	}
}
