package watchcommit

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/tidemark-dev/tidemark/shared/gitauth"
	"github.com/tidemark-dev/tidemark/shared/gittest"
	"github.com/tidemark-dev/tidemark/shared/kube"
	"github.com/tidemark-dev/tidemark/shared/valkeytest"
)

// Targets of one branch share its pushes: one whose credentials are refused says so, and another one's are used.
func TestACredentialThatIsRefusedIsFollowedByAnother(t *testing.T) {
	const lent = "The branch is written with the credentials of GitTarget second meanwhile"
	for _, c := range []struct {
		name          string
		secrets       map[string]string
		refuse        bool // the first push
		status        int
		first, second string
	}{
		{"both are good", map[string]string{"a": "good", "b": "good"}, false, http.StatusOK, "True Mirroring", "True Mirroring"},
		{"the first is refused", map[string]string{"a": "bad", "b": "good"}, false, http.StatusOK, "False CredentialsRefused: Secret tidemark/a: ", "True Mirroring"},
		{"the first may read and not push", map[string]string{"a": "good", "b": "good"}, true, http.StatusOK, "False CredentialsRefused: Secret tidemark/a: ", "True Mirroring"},
		{"the second is refused", map[string]string{"a": "good", "b": "bad"}, false, http.StatusOK, "True Mirroring", "True Mirroring"},
		{"the first is not there", map[string]string{"b": "good"}, false, http.StatusOK, "False SecretNotReadable", "True Mirroring"},
		{"the first is refused and the second is not there", map[string]string{"a": "bad"}, false, http.StatusServiceUnavailable, "False CredentialsRefused: Secret tidemark/a: ", "False SecretNotReadable"},
		{"both are refused", map[string]string{"a": "bad", "b": "worse"}, false, http.StatusServiceUnavailable, "False CredentialsRefused: Secret tidemark/a: ", "False CredentialsRefused: Secret tidemark/b: "},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, newScenario(1, 2).session, valkeytest.Mini(t))
			w.git.RequirePassword("mirror", "good")
			targets := []string{
				strings.Replace(smallTarget(""), "path: p}", "path: p, secretRef: {namespace: tidemark, name: a}}", 1),
				strings.NewReplacer("name: prod", "name: second", "path: p}", "path: q, secretRef: {namespace: tidemark, name: b}}").Replace(smallTarget("")),
			}
			cluster := w.serve(c.secrets, targets...)
			if c.refuse {
				w.git.Inject(gittest.Pushes, 1, gittest.Refuse(http.StatusForbidden, ""))
			}
			if status, r := post(t, w.function()); status != c.status {
				t.Errorf("status %d, %+v, want %d", status, r, c.status)
			}
			if c.status == http.StatusOK {
				w.wantHistory(first, first)
			}
			for target, want := range map[string]string{"prod": c.first, "second": c.second} {
				got := cluster.condition(target, kube.ConditionReady)
				if !strings.HasPrefix(got, want) {
					t.Errorf("%s is %q, want %s", target, got, want)
				}
				if lends := c.status == http.StatusOK && strings.HasPrefix(want, "False Cred"); strings.HasSuffix(got, lent) != lends {
					t.Errorf("%s is %q: says that another one's credentials are used: want %v", target, got, lends)
				}
			}
			if told := cluster.told(kube.ReasonCredentialsRefused); len(told) != strings.Count(c.first+c.second, "Refused") {
				t.Errorf("told %q", told)
			}
		})
	}
}

func TestAKeyThatIsRefusedIsNoTroubleOfTheNetwork(t *testing.T) {
	err := fmt.Errorf("read refs of git.example.com: ssh handshake: %w", gitauth.ErrRefused)
	if p := problemOf(t.Context(), err); p.Reason != kube.ReasonCredentialsRefused {
		t.Errorf("%v is %s", err, p.Reason)
	}
	if p := problemOf(t.Context(), errors.New("dial tcp: connection refused")); p.Reason != kube.ReasonRepositoryUnreachable {
		t.Errorf("no connection is %s", p.Reason)
	}
}
