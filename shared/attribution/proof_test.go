package attribution

import "testing"

// A request that named the version which it replaced, and was answered with another, has changed the object. The API
// server reads that version as a number, and 0 as none.
func TestWhatARequestReplaced(t *testing.T) {
	for _, c := range []struct {
		named, answered string
		proven          bool
		replaces        string
		reason          Reason
	}{
		{"5", "6", true, "5", ""},
		{"6", "6", false, "6", ReasonUnchanged},
		{"06", "6", false, "6", ReasonUnchanged},
		{"0", "6", false, "", ""},
		{"", "6", false, "", ""},
	} {
		e := Event{
			Verb: "update", Stage: stageResponseComplete, Code: 200, User: User{Username: "alice"},
			Object:   ObjectRef{Resource: "configmaps", Namespace: "shop", Name: "web", ResourceVersion: c.named},
			Request:  Body{Kind: "ConfigMap", ResourceVersion: c.named},
			Response: Body{Kind: "ConfigMap", UID: "u", ResourceVersion: c.answered},
		}
		if got := Admit(&e); got != c.reason {
			t.Errorf("replacing %q, answered %q: reason %q, want %q", c.named, c.answered, got, c.reason)
		}
		if got := Prove(nil, &e)[0].Proven; got != c.proven {
			t.Errorf("replacing %q, answered %q: proven is %v, want %v", c.named, c.answered, got, c.proven)
		}
		e.Request, e.Response = Body{}, Body{}
		if got := Prove(nil, &e)[0].Replaces; got != c.replaces {
			t.Errorf("replacing %q, without bodies: replaces %q, want %q", c.named, got, c.replaces)
		}
	}
}
