package kube

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func validTarget() *GitTarget {
	t := &GitTarget{
		ObjectMeta: metav1.ObjectMeta{Name: "prod"},
		Spec: GitTargetSpec{
			Repository: Repository{URL: "https://git.example.com/cfg.git", Path: "clusters/prod", SecretRef: &SecretReference{Namespace: "tidemark", Name: "cfg-git"}},
			Resources:  []ResourceRule{{Group: "apps", Resource: "deployments"}, {Resource: "configmaps", Namespaces: []string{"shop"}}},
		},
	}
	t.SetDefaults()
	return t
}

func TestGitTargetValidate(t *testing.T) {
	tests := []struct {
		name   string
		change func(*GitTargetSpec)
		want   string // a part of the error; empty: valid
	}{
		{"the example of the documentation is valid", func(*GitTargetSpec) {}, ""},
		{"ssh with a user is valid", func(s *GitTargetSpec) { s.Repository.URL = "ssh://git@git.example.com:2222/cfg.git" }, ""},
		{"git's short SSH form is valid", func(s *GitTargetSpec) { s.Repository.URL = "git@git.example.com:team/cfg.git" }, ""},
		{"ssh without a Secret", func(s *GitTargetSpec) {
			s.Repository = Repository{URL: "ssh://git@git.example.com/cfg.git", Branch: "main"}
		}, "spec.repository.secretRef must be given: SSH needs"},
		{"git's short SSH form without a Secret", func(s *GitTargetSpec) { s.Repository = Repository{URL: "git@git.example.com:cfg.git", Branch: "main"} }, "spec.repository.secretRef must be given: SSH needs"},
		{"https without a Secret is valid", func(s *GitTargetSpec) { s.Repository.SecretRef = nil }, ""},
		{"the root of the repository is a path", func(s *GitTargetSpec) { s.Repository.Path = "" }, ""},
		{"a branch may have slashes", func(s *GitTargetSpec) { s.Repository.Branch = "env/prod" }, ""},
		{"no grace at all is allowed", func(s *GitTargetSpec) { s.AttributionGrace = &metav1.Duration{} }, ""},
		{"no URL", func(s *GitTargetSpec) { s.Repository.URL = "" }, "spec.repository.url must be given"},
		{"a local path is not a URL", func(s *GitTargetSpec) { s.Repository.URL = "/srv/cfg.git" }, "must be http://HOST/PATH"},
		{"a file URL", func(s *GitTargetSpec) { s.Repository.URL = "file://host/srv/cfg.git" }, "must begin with http://"},
		{"a URL with a user", func(s *GitTargetSpec) { s.Repository.URL = "https://bob@git.example.com/cfg.git" }, "must not hold a username"},
		{"a URL without a path", func(s *GitTargetSpec) { s.Repository.URL = "https://git.example.com/" }, "must have a path"},
		{"a URL with a query", func(s *GitTargetSpec) { s.Repository.URL = "https://git.example.com/cfg.git?ref=main" }, "must not have a query"},
		{"a full ref is no branch", func(s *GitTargetSpec) { s.Repository.Branch = "refs/heads/main" }, "spec.repository.branch (refs/heads/main)"},
		{"a branch that git refuses", func(s *GitTargetSpec) { s.Repository.Branch = "a..b" }, "spec.repository.branch (a..b)"},
		{"a path that climbs out", func(s *GitTargetSpec) { s.Repository.Path = "clusters/../.." }, "without empty, '.' or '..' segments"},
		{"an absolute path", func(s *GitTargetSpec) { s.Repository.Path = "/clusters" }, "must be relative"},
		{"a path into .git, whatever its case", func(s *GitTargetSpec) { s.Repository.Path = "a/.GIT/hooks" }, "must not enter .git"},
		{"a path that Windows cannot hold", func(s *GitTargetSpec) { s.Repository.Path = "a:b" }, "spec.repository.path (a:b)"},
		{"a Secret without a namespace", func(s *GitTargetSpec) { s.Repository.SecretRef.Namespace = "" }, "spec.repository.secretRef.namespace"},
		{"a route with a slash", func(s *GitTargetSpec) { s.AuditRoute = "a/b" }, "spec.auditRoute (a/b)"},
		{"a grace beyond the watch cache", func(s *GitTargetSpec) { s.AttributionGrace = &metav1.Duration{Duration: 90 * time.Second} },
			"spec.attributionGrace (1m30s) must be between 0s and 1m0s: the API server may forget changes after 75s"},
		{"no resource", func(s *GitTargetSpec) { s.Resources = nil }, "must name at least one resource"},
		{"a resource twice", func(s *GitTargetSpec) { s.Resources[0] = ResourceRule{Resource: "configmaps"} }, "spec.resources[1] (configmaps) must be named once"},
		{"a kind is no resource", func(s *GitTargetSpec) { s.Resources[0].Resource = "Deployment" }, "spec.resources[0].resource (Deployment)"},
		{"a subresource", func(s *GitTargetSpec) { s.Resources[0].Resource = "deployments/scale" }, "subresources have no watch"},
		{"our own group", func(s *GitTargetSpec) { s.Resources[0].Group = Group }, "own group"},
		{"a namespace twice", func(s *GitTargetSpec) { s.Resources[1].Namespaces = []string{"shop", "shop"} }, "spec.resources[1].namespaces[1] (shop) must be named once"},
		{"a broken selector", func(s *GitTargetSpec) {
			s.Resources[0].Selector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Near"}}}
		}, "spec.resources[0].selector"},
		{"an empty actor", func(s *GitTargetSpec) {
			s.IgnoreActors = []string{"system:serviceaccount:flux-system:kustomize-controller", " "}
		}, "spec.ignoreActors[1]"},
		{"an unknown grouping", func(s *GitTargetSpec) { s.Commit.Grouping = "PerDay" }, "spec.commit.grouping (PerDay) must be PerAuthor or PerChange"},
		{"a hold of a day", func(s *GitTargetSpec) { s.Commit.Hold = &metav1.Duration{Duration: 24 * time.Hour} }, "spec.commit.hold (24h0m0s)"},
		{"a committer that breaks the commit object", func(s *GitTargetSpec) { s.Commit.Committer.Name = "a\nb" }, "spec.commit.committer.name"},
		{"an e-mail without @", func(s *GitTargetSpec) { s.Commit.Committer.Email = "bot" }, "spec.commit.committer.email (bot)"},
		{"a message with the fields that there are", func(s *GitTargetSpec) {
			s.Commit.Message = "{author}: {summary} [{verb} {resource} {namespace}/{name}, {count}]"
		}, ""},
		{"a message with a field that is none", func(s *GitTargetSpec) { s.Commit.Message = "by {user}" }, "spec.commit.message ({user}) is not one of {summary}"},
		{"a message of two lines", func(s *GitTargetSpec) { s.Commit.Message = "a\nChange: x" }, "must be one line"},
		{"plaintext Secrets", func(s *GitTargetSpec) { s.Secrets = "Plain" }, "spec.secrets (Plain) must be Skip"},
		{"an unknown prune policy", func(s *GitTargetSpec) { s.Prune = "Sometimes" }, "must be Never or OnEvent or Always"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			target := validTarget()
			tc.change(&target.Spec)
			err := target.Validate()
			switch {
			case tc.want == "" && err != nil:
				t.Errorf("got %v, want valid", err)
			case tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)):
				t.Errorf("got %v, want an error with %q", err, tc.want)
			}
		})
	}
}

func TestValidateTellsAllProblemsAtOnceAndNoPassword(t *testing.T) {
	target := validTarget()
	target.Name = "Prod"
	target.Spec.Repository.URL = "https://u:hunter2@git.example.com/cfg.git"
	target.Spec.Prune = "x"
	err := target.Validate()
	if err == nil {
		t.Fatal("got no error")
	}
	for _, want := range []string{"metadata.name (Prod)", "spec.repository.url", "spec.prune (x)"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("got %q, want %q in it", err, want)
		}
	}
	if strings.Contains(err.Error(), "hunter2") {
		t.Errorf("the error tells the password: %v", err)
	}
}

func TestCommitRequestValidate(t *testing.T) {
	r := &CommitRequest{Spec: CommitRequestSpec{TargetRef: TargetReference{Name: "prod"}, Message: "Raise the limit"}}
	if err := r.Validate(); err != nil {
		t.Errorf("got %v, want valid", err)
	}
	for ttl, want := range map[int32]string{0: "", 3600: "", -1: "spec.ttlSecondsAfterFinished (-1) must not be negative"} {
		r.Spec.TTLSecondsAfterFinished = &ttl
		if err := r.Validate(); (err == nil) != (want == "") || err != nil && err.Error() != want {
			t.Errorf("ttl %d: got %v, want %q", ttl, err, want)
		}
	}
	r.Spec.Message = " \n"
	if err := r.Validate(); err == nil || !strings.Contains(err.Error(), "spec.message") {
		t.Errorf("a message of space: got %v", err)
	}
	r.Spec = CommitRequestSpec{Message: "m"}
	if err := r.Validate(); err == nil || !strings.Contains(err.Error(), "spec.targetRef.name") {
		t.Errorf("no target: got %v", err)
	}
}

func TestACommitRequestExpiresWhenItsTimeIsOverOnceItIsDone(t *testing.T) {
	done := func(state metav1.ConditionStatus) []metav1.Condition {
		return []metav1.Condition{{Type: ConditionCommitted, Status: state, LastTransitionTime: metav1.NewTime(noon)}}
	}
	seconds := func(n int32) *int32 { return &n }
	for name, c := range map[string]struct {
		ttl        *int32
		conditions []metav1.Condition
		after      time.Duration
		want       bool
	}{
		"pushed, its time is over":            {seconds(60), done(metav1.ConditionTrue), time.Minute, true},
		"nothing was pending, it is over too": {seconds(60), done(metav1.ConditionFalse), time.Minute, true},
		"pushed a moment ago":                 {seconds(60), done(metav1.ConditionTrue), 59 * time.Second, false},
		"at once":                             {seconds(0), done(metav1.ConditionTrue), 0, true},
		"it waits":                            {seconds(0), done(metav1.ConditionUnknown), time.Hour, false},
		"nobody has looked at it":             {seconds(0), nil, time.Hour, false},
		"it is to stay":                       {nil, done(metav1.ConditionTrue), time.Hour, false},
	} {
		r := &CommitRequest{Spec: CommitRequestSpec{TTLSecondsAfterFinished: c.ttl}, Status: CommitRequestStatus{Conditions: c.conditions}}
		if got := r.Expired(noon.Add(c.after)); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

func TestSecretsAreNamedButNotWatched(t *testing.T) {
	target := validTarget()
	target.Spec.Resources = append(target.Spec.Resources, ResourceRule{Resource: "secrets"}, ResourceRule{Group: "example.com", Resource: "secrets"})
	if err := target.Validate(); err != nil {
		t.Fatal(err)
	}
	if !target.SkipsSecrets() {
		t.Error("SkipsSecrets is false")
	}
	var got []string
	for _, r := range target.Watched() {
		got = append(got, r.GroupResource().String())
	}
	if want := "deployments.apps configmaps secrets.example.com"; strings.Join(got, " ") != want {
		t.Errorf("watched %v, want %s", got, want)
	}
}
