package kube

import (
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"unicode"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

var (
	routeForm = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$`)
	// scpForm is git's short form of an SSH address, user@host:path.
	scpForm = regexp.MustCompile(`^[A-Za-z0-9._-]+@[A-Za-z0-9.-]+:[^\s:]+$`)
	// branchBad matches what git check-ref-format refuses in a branch name.
	branchBad = regexp.MustCompile(`[\x00-\x20\x7f~^:?*\[\\]|\.\.|@\{|//|\.lock(/|$)|(^|/)\.|\.$|^[-/]|/$|^@$`)
	// messageFields are what shared/history replaces in a message.
	messageFields = []string{"{summary}", "{count}", "{author}", "{verb}", "{resource}", "{namespace}", "{name}"}
	messageField  = regexp.MustCompile(`\{[^{}]*\}`)
	pathBad       = regexp.MustCompile(`[\x00-\x1f\x7f\\:*?"<>|]`)
)

// Validate says everything that is wrong with the target, each with the field, the value and the rule. It repeats
// the rules of the CustomResourceDefinition, for targets that come from a file, and adds those that need code.
// The repository's URL is never quoted: it may hold a password.
func (t *GitTarget) Validate() error {
	var bad problems
	if msgs := validation.IsDNS1123Subdomain(t.Name); len(msgs) > 0 {
		bad.add("metadata.name", t.Name, msgs[0])
	}
	s := &t.Spec
	s.Repository.validate(&bad)
	if !routeForm.MatchString(s.AuditRoute) {
		bad.add("spec.auditRoute", s.AuditRoute, "must be 1 to 63 letters, digits, '.', '_' or '-', beginning and ending with a letter or digit")
	}
	if g := s.AttributionGrace; g != nil && (g.Duration < 0 || g.Duration > MaxAttributionGrace) {
		bad.add("spec.attributionGrace", g.Duration, fmt.Sprintf("must be between 0s and %s: the API server may forget changes after 75s", MaxAttributionGrace))
	}
	validateResources(s.Resources, &bad)
	for i, a := range s.IgnoreActors {
		if strings.TrimSpace(a) == "" {
			bad.add(fmt.Sprintf("spec.ignoreActors[%d]", i), a, "must be a username")
		}
	}
	s.Commit.validate(&bad)
	oneOf(&bad, "spec.secrets", s.Secrets, SecretsSkip)
	oneOf(&bad, "spec.prune", s.Prune, PruneNever, PruneOnEvent, PruneAlways)
	return bad.err()
}

func (r *Repository) validate(bad *problems) {
	if reason := urlProblem(r.URL); reason != "" {
		bad.addHidden("spec.repository.url", reason)
	}
	if r.Branch == "" || len(r.Branch) > 244 || branchBad.MatchString(r.Branch) || strings.HasPrefix(r.Branch, "refs/") {
		bad.add("spec.repository.branch", r.Branch, "must be the short name of a branch that git accepts, such as main")
	}
	if reason := pathProblem(r.Path); reason != "" {
		bad.add("spec.repository.path", r.Path, reason)
	}
	r.SecretRef.validate(bad, "spec.repository.secretRef")
	if r.SecretRef == nil && (strings.HasPrefix(r.URL, "ssh://") || scpForm.MatchString(r.URL)) {
		bad.addHidden("spec.repository.secretRef", "must be given: SSH needs a Secret with identity and known_hosts")
	}
}

func (r *SecretReference) validate(bad *problems, field string) {
	if r == nil {
		return
	}
	if msgs := validation.IsDNS1123Label(r.Namespace); len(msgs) > 0 {
		bad.add(field+".namespace", r.Namespace, msgs[0])
	}
	if msgs := validation.IsDNS1123Subdomain(r.Name); len(msgs) > 0 {
		bad.add(field+".name", r.Name, msgs[0])
	}
}

func urlProblem(raw string) string {
	if scpForm.MatchString(raw) && len(raw) <= 1024 {
		return ""
	}
	u, err := url.Parse(raw)
	switch {
	case raw == "":
		return "must be given"
	case len(raw) > 1024:
		return "must be at most 1024 characters"
	case err != nil || u.Host == "":
		return "must be http://HOST/PATH, https://HOST/PATH, ssh://USER@HOST/PATH or USER@HOST:PATH"
	case u.Scheme == "ssh":
		if _, has := u.User.Password(); has {
			return "must not hold a password: put it into the Secret"
		}
	case u.Scheme == "http", u.Scheme == "https":
		if u.User != nil {
			return "must not hold a username or password: put them into the Secret"
		}
	default:
		return "must begin with http://, https:// or ssh://"
	}
	switch {
	case strings.Trim(u.Path, "/") == "":
		return "must have a path"
	case u.RawQuery != "" || u.Fragment != "":
		return "must not have a query or fragment"
	}
	return ""
}

func pathProblem(p string) string {
	switch {
	case p == "":
		return ""
	case len(p) > 512:
		return "must be at most 512 characters"
	case pathBad.MatchString(p):
		return `must not hold control characters or any of \ : * ? " < > |`
	}
	for segment := range strings.SplitSeq(p, "/") {
		switch {
		case segment == "" || segment == "." || segment == "..":
			return "must be relative, without empty, '.' or '..' segments and without a '/' at its ends"
		case strings.EqualFold(segment, ".git"):
			return "must not enter .git"
		case strings.TrimRight(segment, " .") != segment:
			return "must not have a segment that ends with a dot or a space"
		}
	}
	return ""
}

func validateResources(rules []ResourceRule, bad *problems) {
	if len(rules) == 0 {
		bad.add("spec.resources", "[]", "must name at least one resource")
	}
	seen := map[string]bool{}
	for i, r := range rules {
		at := fmt.Sprintf("spec.resources[%d]", i)
		if msgs := validation.IsDNS1123Label(r.Resource); len(msgs) > 0 {
			bad.add(at+".resource", r.Resource, "must be the plural lower-case name of a resource, such as configmaps; subresources have no watch")
		}
		if r.Group != "" {
			if msgs := validation.IsDNS1123Subdomain(r.Group); len(msgs) > 0 {
				bad.add(at+".group", r.Group, msgs[0])
			}
		}
		if r.Group == Group {
			bad.add(at+".group", r.Group, "must not be Tidemark's own group: its status would be mirrored forever")
		}
		if gr := r.GroupResource().String(); seen[gr] {
			bad.add(at, gr, "must be named once; list the namespaces in one rule")
		} else {
			seen[gr] = true
		}
		spaces := map[string]bool{}
		for j, ns := range r.Namespaces {
			where := fmt.Sprintf("%s.namespaces[%d]", at, j)
			if msgs := validation.IsDNS1123Label(ns); len(msgs) > 0 {
				bad.add(where, ns, msgs[0])
			}
			if spaces[ns] {
				bad.add(where, ns, "must be named once")
			}
			spaces[ns] = true
		}
		if _, err := metav1.LabelSelectorAsSelector(r.Selector); err != nil {
			bad.add(at+".selector", metav1.FormatLabelSelector(r.Selector), err.Error())
		}
	}
}

func (c *CommitPolicy) validate(bad *problems) {
	c.SigningKeyRef.validate(bad, "spec.commit.signingKeyRef")
	oneOf(bad, "spec.commit.grouping", c.Grouping, PerAuthor, PerChange)
	if h := c.Hold; h != nil && (h.Duration < 0 || h.Duration > MaxHold) {
		bad.add("spec.commit.hold", h.Duration, fmt.Sprintf("must be between 0s and %s", MaxHold))
	}
	if c.Committer.Name == "" || strings.ContainsAny(c.Committer.Name, "<>\n\r\x00") {
		bad.add("spec.commit.committer.name", c.Committer.Name, "must be a name without '<', '>' or line breaks")
	}
	if !strings.Contains(c.Committer.Email, "@") || strings.ContainsAny(c.Committer.Email, "<> \n\r\x00") {
		bad.add("spec.commit.committer.email", c.Committer.Email, "must be an e-mail address")
	}
	if len(c.Message) > 512 || strings.ContainsFunc(c.Message, unicode.IsControl) {
		bad.add("spec.commit.message", fmt.Sprintf("%d characters", len(c.Message)), "must be one line of at most 512 characters")
	}
	for _, f := range messageField.FindAllString(c.Message, -1) {
		if !slices.Contains(messageFields, f) {
			bad.add("spec.commit.message", f, "is not one of "+strings.Join(messageFields, ", "))
		}
	}
}

// Validate says what is wrong with the request.
func (r *CommitRequest) Validate() error {
	var bad problems
	if msgs := validation.IsDNS1123Subdomain(r.Spec.TargetRef.Name); len(msgs) > 0 {
		bad.add("spec.targetRef.name", r.Spec.TargetRef.Name, msgs[0])
	}
	if n := len(r.Spec.Message); n == 0 || n > 4096 || strings.TrimSpace(r.Spec.Message) == "" {
		bad.add("spec.message", fmt.Sprintf("%d characters", n), "must hold 1 to 4096 characters, not only space")
	}
	if ttl := r.Spec.TTLSecondsAfterFinished; ttl != nil && *ttl < 0 {
		bad.add("spec.ttlSecondsAfterFinished", *ttl, "must not be negative")
	}
	return bad.err()
}

// problems collects what is wrong, so that a person sees all of it at once.
type problems []error

func (p *problems) add(field string, value any, rule string) {
	*p = append(*p, fmt.Errorf("%s (%v) %s", field, value, rule))
}

func (p *problems) addHidden(field, rule string) { *p = append(*p, fmt.Errorf("%s %s", field, rule)) }

func (p problems) err() error { return errors.Join(p...) }

func oneOf[T ~string](bad *problems, field string, value T, allowed ...T) {
	names := make([]string, len(allowed))
	for i, a := range allowed {
		if value == a {
			return
		}
		names[i] = string(a)
	}
	bad.add(field, value, "must be "+strings.Join(names, " or "))
}
