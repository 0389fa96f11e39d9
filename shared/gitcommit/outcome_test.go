package gitcommit

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-dev/tidemark/shared/gitobject"
	"github.com/tidemark-dev/tidemark/shared/gittest"
	"github.com/tidemark-dev/tidemark/shared/gitwire"
)

const pushCases = "../../events/samples/cases/git/15-push-outcomes"

// classNamed are the classes under the names that the recorded cases give them.
var classNamed = map[string]Class{
	"landed": Landed, "lost-race": LostRace, "retry-same-tip": RetrySameTip, "re-resolve": ReResolve, "policy": Policy,
	"bug-rebuild-from-fetch": MissingObjects, "retry-once": Damaged, "server-trouble": ServerTrouble, "unknown-verify-by-ls-refs": Unknown,
	"auth": Auth, "auth-or-policy": Auth, "config": Configuration, "too-large": TooLarge, "throttled": Throttled,
}

// plainly are the cases whose plain form, without the words for people, does not say what happened: it must lead to
// the class that looks at the branch, or repeats once, and never to one that assumes something.
var plainly = map[string]Class{"stale-old": ReResolve, "lock-held": ReResolve, "branch-deleted": ReResolve, "no-detail": ReResolve, "disk-full": Damaged}

func TestClassifiesRecordedAnswers(t *testing.T) {
	var cases struct {
		Ref, Old string
		Table    []struct {
			Name, Class string
			TipHint     string `json:"tip_hint"`
		}
		HTTP []struct {
			Status int
			Class  string
		}
	}
	gittest.Case(t, "15-push-outcomes", &cases)
	answers := 0
	for _, c := range cases.Table {
		want, known := classNamed[c.Class]
		if !known {
			t.Fatalf("%s: class %q is unknown", c.Name, c.Class)
		}
		for _, form := range []string{"sideband", "plain"} {
			body, err := os.ReadFile(filepath.Join(pushCases, c.Name+"."+form+".bin"))
			if errors.Is(err, os.ErrNotExist) && form == "sideband" && c.Name == "truncated" {
				continue // it was recorded plain only
			}
			if err != nil {
				t.Fatal(err)
			}
			answers++
			class, hint := want, c.TipHint
			if bare, found := plainly[c.Name]; found && form == "plain" {
				class, hint = bare, ""
			}
			report, err := gitwire.ReadPushReport(bytes.NewReader(body), cases.Ref)
			got := classify(report, err, time.Now())
			if got.Class != class {
				t.Errorf("%s, %s: got %s, want %s (report %+v, %v)", c.Name, form, got.Class, class, report, err)
			}
			if hint != "" && got.TipHint != gitobject.MustParseID(hint) || hint == "" && !got.TipHint.IsZero() {
				t.Errorf("%s, %s: tip hint got %s, want %q", c.Name, form, got.TipHint, hint)
			}
			if got.Words == "" && class != Landed && class != Unknown {
				t.Errorf("%s, %s: the server's words are lost", c.Name, form)
			}
			// Whatever is cut off is no answer, unless all that is missing is behind the end of the report.
			for cut := range len(body) {
				report, err := gitwire.ReadPushReport(bytes.NewReader(body[:cut]), cases.Ref)
				if got := classify(report, err, time.Now()); got.Class != Unknown && (got.Class != class || cut < len(body)-4) {
					t.Errorf("%s, %s, cut after %d of %d bytes: got %s, want unknown", c.Name, form, cut, len(body), got.Class)
				}
			}
		}
	}
	if want := 2*len(cases.Table) - 1; answers != want || answers == 0 {
		t.Errorf("%d answers were read, want %d", answers, want)
	}
	for _, c := range cases.HTTP {
		status := &gitwire.StatusError{Code: c.Status, Throttled: c.Status == http.StatusTooManyRequests || c.Status == http.StatusServiceUnavailable}
		if got := classify(&gitwire.PushReport{}, fmt.Errorf("post: %w", status), time.Now()); got.Class != classNamed[c.Class] {
			t.Errorf("HTTP %d: got %s, want %s", c.Status, got.Class, classNamed[c.Class])
		}
	}
}

func TestServersWordsAreFitForPeople(t *testing.T) {
	talk := "GitLab: no.\x1b[31m\r\nsee https://bob:hunter2@git.example.com/x?private_token=tok-90aa \x00\xff\n" +
		"Authorization: Basic c29tZXRva2Vu\n" + strings.Repeat("many words ", 1000) + "\n" + strings.Repeat("many lines\n", 1000)
	body := gitwire.AppendPacket(nil, "\x02"+talk)
	report := gitwire.AppendFlush(gitwire.AppendPacket(gitwire.AppendPacket(nil, "unpack ok\n"), "ng refs/heads/main pre-receive hook declined\n"))
	body = gitwire.AppendFlush(gitwire.AppendPacket(body, append([]byte{1}, report...)))
	read, err := gitwire.ReadPushReport(bytes.NewReader(body), "refs/heads/main")
	got := classify(read, err, time.Now())
	if got.Class != Policy || !strings.HasPrefix(got.Words, "GitLab: no.") {
		t.Errorf("got %s, %q", got.Class, got.Words)
	}
	if len(got.Words) > 1100 {
		t.Errorf("the words are %d bytes long", len(got.Words))
	}
	for _, bad := range []string{"hunter2", "tok-90aa", "c29tZXRva2Vu", "\x1b", "\x00", "\r", "\xff"} {
		if strings.Contains(got.Words, bad) {
			t.Errorf("the words hold %q: %q", bad, got.Words)
		}
	}
}
