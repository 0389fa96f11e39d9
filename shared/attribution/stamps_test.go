package attribution

import (
	"reflect"
	"strings"
	"testing"
)

func TestTracesAreReadAsTheyWereWritten(t *testing.T) {
	for _, v := range []version{
		{rv: "5", made: 1},
		{rv: "5", made: 1, fields: "kubectl@3+ab flux^@7 kubectl/scale@-+r"},
		{rv: "5", made: 1, fields: "kubectl@3", deletion: 39, grace: 30, generation: 7},
	} {
		s := Observe(Modified, v.object("web", "u"), nil)
		trace := s.Trace()
		text := trace.String()
		if strings.ContainsAny(text, " :") {
			t.Errorf("%+v: %q has a space or a colon", v, text)
		}
		if got, ok := ParseTrace(text); !ok || !reflect.DeepEqual(got, trace) {
			t.Errorf("%+v: read %+v, want %+v", v, got, trace)
		}
	}
	for _, text := range []string{
		"", "5", "5,,0", "5,x,0,0", "5,,x,0", "5,,0,x", "5,,0,0,a.b.3", "5,,0,0,a.b.x.3", "5,,0,0,a.b..x", "5,,0,0,!.b..1", "5,,0,0,a.!..1",
		"278,1774000000,12,0f3a,,0",
	} {
		if got, ok := ParseTrace(text); ok {
			t.Errorf("%q is read as %+v", text, got)
		}
	}
}
