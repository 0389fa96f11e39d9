package gittest

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"testing"
)

// cases are the recorded and scripted cases, as seen from a package of shared.
const cases = "../../events/samples/cases/git"

// Case reads what a case says into a struct. A field that stays empty fails the test: it would assert nothing.
func Case(t testing.TB, name string, into any) {
	t.Helper()
	if err := json.Unmarshal(CaseFile(t, name, "case.json"), into); err != nil {
		t.Fatalf("case %s: %v", name, err)
	}
	read := reflect.ValueOf(into).Elem()
	for i := range read.NumField() {
		field := read.Field(i)
		if field.IsZero() || field.Kind() == reflect.Slice && field.Len() == 0 {
			t.Fatalf("case %s says nothing of %s", name, read.Type().Field(i).Name)
		}
	}
}

// CaseFile reads a file that belongs to a case.
func CaseFile(t testing.TB, name, file string) []byte {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(cases, name, file))
	if err != nil {
		t.Fatal(err)
	}
	return raw
}
