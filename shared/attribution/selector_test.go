package attribution

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/labels"
)

var selectorTexts = []string{
	"", " ", "app", "!app", "app=web", "app==web", "app!=web", "app=", "app!=", "app in (web,db)", "app notin (web, db)", "app in ()", "app in (,)", "app in (web,)", "size>3", "size<3", "size > x", "missing<3",
	"app=web,tier in (front),!gone", "app=web,", ",app", "app web", "in in (in)", "notin", "app in web", "app in (web", "a/b=c", "app = web , size>1", "=web", "!app=web", "app=!web", "app in (a b)", "size>3,size<10", "app\n=\tweb", "((", "app in ((web))",
}

func agreeOnSelector(t *testing.T, text string) {
	t.Helper()
	want, err := labels.Parse(text)
	if err != nil || strings.ContainsRune(text, 0) {
		return // what the API server refuses was never carried out, and a zero byte ends its reading
	}
	for _, have := range []map[string]string{nil, {"app": "web"}, {"app": "", "size": "7"}, {"app": "db", "tier": "front", "size": "-1"}, {"in": "in", "a/b": "c", "size": "3"}, {"gone": "", "app": "web", "tier": "front"}} {
		selected, known := selects(text, have)
		if !known || selected != want.Matches(labels.Set(have)) {
			t.Fatalf("%q selects %v: %t (known: %t), want %t", text, have, selected, known, want.Matches(labels.Set(have)))
		}
	}
}

func TestSelectorsSelectWhatTheAPIServerSelects(t *testing.T) {
	for _, text := range selectorTexts {
		agreeOnSelector(t, text)
	}
	for _, text := range []string{"app in web", "((", "app web", "=web", "app in (web"} {
		if _, known := selects(text, nil); known {
			t.Errorf("%q passes for a selector", text)
		}
	}
}

func FuzzSelectorsSelectWhatTheAPIServerSelects(f *testing.F) {
	for _, text := range selectorTexts {
		f.Add(text)
	}
	f.Fuzz(agreeOnSelector)
}
