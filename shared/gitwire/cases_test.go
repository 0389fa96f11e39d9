package gitwire_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tidemark-dev/tidemark/shared/gitauth"
	"github.com/tidemark-dev/tidemark/shared/gittest"
	"github.com/tidemark-dev/tidemark/shared/gitwire"
)

const (
	repo     = "/org/app.git"
	postRefs = "POST " + repo + "/git-upload-pack"
	getRefs  = "GET " + repo + "/info/refs"
)

func TestOldServersAreDiscoveredOnce(t *testing.T) {
	const name = "01-v2-refused-fallback"
	var c struct {
		TrackingRef string `json:"tracking_ref"`
		Scripts     []map[string]json.RawMessage
		Expect      struct {
			SHA    string
			Second []string `json:"second_listing_requests"`
		}
	}
	gittest.Case(t, name, &c)
	for _, script := range c.Scripts {
		var title string
		answers := map[string]answer{}
		for key, raw := range script {
			if key == "name" {
				if err := json.Unmarshal(raw, &title); err != nil {
					t.Fatal(err)
				}
				continue
			}
			var a answer
			if err := json.Unmarshal(raw, &a); err != nil {
				t.Fatal(err)
			}
			if a.BodyFile != "" {
				a.body = gittest.CaseFile(t, name, a.BodyFile)
			}
			method, path, _ := strings.Cut(key, " ")
			answers[method+" "+repo+"/"+path] = a
		}
		t.Run(title, func(t *testing.T) {
			server := serve(t, answers)
			pool, ep := newPool(t), endpoint(t, server.URL+repo)
			refs, known, err := pool.ListRefs(t.Context(), ep, nil, nil, gitwire.Knowledge{})
			if err != nil {
				t.Fatal(err)
			}
			if refs[c.TrackingRef] != c.Expect.SHA {
				t.Errorf("refs %v, want %s at %s", refs, c.TrackingRef, c.Expect.SHA)
			}
			if got, want := server.requests(), []string{postRefs, getRefs}; !slices.Equal(got, want) {
				t.Errorf("first listing asked %q, want %q", got, want)
			}
			if known.Protocol != gitwire.ProtocolOld {
				t.Errorf("learned %+v, want an old protocol", known)
			}
			if _, _, err := pool.ListRefs(t.Context(), ep, nil, nil, known); err != nil {
				t.Fatal(err)
			}
			var want []string
			for _, r := range c.Expect.Second {
				method, path, _ := strings.Cut(r, " ")
				want = append(want, method+" "+repo+"/"+path)
			}
			if got := server.requests(); !slices.Equal(got, want) {
				t.Errorf("second listing asked %q, want %q", got, want)
			}
		})
	}
}

func TestAServerThatStumblesOverTheRequestIsAskedInTheOldWay(t *testing.T) {
	for _, c := range []struct {
		name     string
		known    gitwire.Protocol
		get      answer
		requests []string
		status   int // 0: the refs are listed
	}{
		{"it knows the old way", gitwire.ProtocolUnknown, answer{Status: 200, body: gittest.CaseFile(t, "01-v2-refused-fallback", "v0.bin")}, []string{postRefs, getRefs}, 0},
		{"it is down", gitwire.ProtocolUnknown, answer{Status: 500}, []string{postRefs, getRefs}, 500},
		{"it did not stumble before", gitwire.ProtocolV2, answer{Status: 500}, []string{postRefs}, 500},
	} {
		t.Run(c.name, func(t *testing.T) {
			server := serve(t, map[string]answer{postRefs: {Status: 500}, getRefs: c.get})
			refs, _, err := newPool(t).ListRefs(t.Context(), endpoint(t, server.URL+repo), nil, nil, gitwire.Knowledge{Protocol: c.known})
			var status *gitwire.StatusError
			if errors.As(err, &status) != (c.status != 0) || c.status != 0 && status.Code != c.status || c.status == 0 && len(refs) == 0 {
				t.Errorf("refs %v, error %v, want status %d", refs, err, c.status)
			}
			if got := server.requests(); !slices.Equal(got, c.requests) {
				t.Errorf("asked %q, want %q", got, c.requests)
			}
		})
	}
}

func TestRedirects(t *testing.T) {
	const name = "04-redirects-and-credentials"
	var c struct {
		Credentials struct{ Username, Password string }
		Scripts     []map[string]json.RawMessage
	}
	gittest.Case(t, name, &c)
	for _, script := range c.Scripts {
		var title string
		var expect struct {
			SHA         string
			Error       string
			Class       string
			AuthSentTo  []string `json:"auth_sent_to"`
			NeverSent   []string `json:"never_sent"`
			MaxRequests int      `json:"max_requests"`
		}
		if err := errors.Join(json.Unmarshal(script["name"], &title), json.Unmarshal(script["expect"], &expect)); err != nil {
			t.Fatal(err)
		}
		t.Run(title, func(t *testing.T) {
			other := serve(t, nil)
			origin := serve(t, map[string]answer{})
			otherURL, err := url.Parse(other.URL)
			if err != nil {
				t.Fatal(err)
			}
			start := repo
			for key, raw := range script {
				if key == "name" || key == "expect" {
					continue
				}
				var a answer
				if err := json.Unmarshal(raw, &a); err != nil {
					t.Fatal(err)
				}
				if a.BodyFile != "" {
					a.body = gittest.CaseFile(t, name, a.BodyFile)
				}
				if to, ok := a.Headers["Location"]; ok {
					to = strings.ReplaceAll(to, "OTHER/", otherURL.Host+"/")
					to = strings.ReplaceAll(to, "ORIGIN_HOST:OTHERPORT", otherURL.Host)
					a.Headers["Location"] = to
				}
				origin.answers[key] = a
				if strings.Contains(key, "/org/app/") {
					start = "/org/app"
				}
			}
			refs, err := list(t, origin.URL+start, gitauth.Basic(c.Credentials.Username, c.Credentials.Password), nil)
			if (err != nil) != (expect.Error != "") {
				t.Fatalf("refs %v, error %v, want an error: %v", refs, err, expect.Error != "")
			}
			if expect.SHA != "" && refs["refs/heads/main"] != expect.SHA {
				t.Errorf("refs %v, want main at %s", refs, expect.SHA)
			}
			if refused := expect.Class == "auth-or-config" || len(expect.NeverSent) > 0; refused && !errors.Is(err, gitwire.ErrRedirect) {
				t.Errorf("error %v, want ErrRedirect", err)
			}
			for _, secret := range expect.NeverSent {
				if strings.Contains(other.sent, secret) || err != nil && strings.Contains(err.Error(), secret) {
					t.Errorf("%q was sent to another origin or printed (%v)", secret, err)
				}
			}
			if len(other.requests()) != 0 {
				t.Error("another origin was asked")
			}
			if n := len(origin.requests()); expect.MaxRequests > 0 && n > expect.MaxRequests {
				t.Errorf("%d requests, want at most %d", n, expect.MaxRequests)
			}
			if len(expect.AuthSentTo) > 0 && slices.Contains(origin.auth, "") {
				t.Errorf("credentials sent to the origin: %q, want with each request", origin.auth)
			}
		})
	}
}

func TestAPostGoesToWhereDiscoveryWasRedirected(t *testing.T) {
	v2 := "000eversion 2\n0013ls-refs=unborn\n0000"
	server := serve(t, map[string]answer{
		"POST /org/app/git-upload-pack":     {Status: 301, Headers: map[string]string{"Location": "/org/app.git/git-upload-pack"}},
		"GET /org/app/info/refs":            {Status: 301, Headers: map[string]string{"Location": "/org/app.git/info/refs?service=git-upload-pack"}},
		"GET /org/app.git/info/refs":        {Status: 200, body: []byte(v2)},
		"POST /org/app.git/git-upload-pack": {Status: 200, body: gittest.CaseFile(t, "06-annotated-tags", "v2-lsrefs.bin")},
	})
	pool, ep := newPool(t), endpoint(t, server.URL+"/org/app")
	var known gitwire.Knowledge
	for i, want := range [][]string{
		{"POST /org/app/git-upload-pack", "GET /org/app/info/refs", "GET /org/app.git/info/refs", "POST /org/app.git/git-upload-pack"},
		{"POST /org/app.git/git-upload-pack"},
	} {
		refs, learned, err := pool.ListRefs(t.Context(), ep, nil, nil, known)
		if err != nil || len(refs) == 0 {
			t.Fatalf("listing %d: %v, %v", i, refs, err)
		}
		if got := server.requests(); !slices.Equal(got, want) {
			t.Errorf("listing %d asked %q, want %q", i, got, want)
		}
		known = learned
	}
}

// A repository that moves again is found again: for whoever lists, also in the old way, and for whoever posts.
func TestARepositoryThatMovesAgainIsFound(t *testing.T) {
	refs := gittest.CaseFile(t, "06-annotated-tags", "v2-lsrefs.bin")
	to := func(place string) answer {
		return answer{Status: 301, Headers: map[string]string{"Location": place + "/info/refs?service=git-upload-pack"}}
	}
	for _, old := range []bool{false, true} {
		for _, second := range []string{"/c", "/a"} { // and back to where it was
			advertisement := []byte("000eversion 2\n0013ls-refs=unborn\n0000")
			if old {
				advertisement = gittest.CaseFile(t, "01-v2-refused-fallback", "v0.bin")
			}
			at := func(place string) map[string]answer {
				answers := map[string]answer{"GET /a/info/refs": to(place), "GET " + place + "/info/refs": {Status: 200, body: advertisement}}
				if !old {
					answers["POST "+place+"/git-upload-pack"] = answer{Status: 200, body: refs}
				}
				return answers
			}
			server := serve(t, at("/b"))
			pool, ep := newPool(t), endpoint(t, server.URL+"/a")
			listed, known, err := pool.ListRefs(t.Context(), ep, nil, nil, gitwire.Knowledge{})
			if err != nil || len(listed) == 0 {
				t.Fatalf("old %v, moved to /b: %v, %v", old, listed, err)
			}
			server.set(at(second))
			if !old {
				if _, err := pool.Exchange(t.Context(), ep, nil, gitwire.Request{Service: gitwire.UploadPack}); !errors.Is(err, gitwire.ErrRedirect) {
					t.Errorf("a POST to where it was: %v, want ErrRedirect", err)
				}
			}
			if listed, _, err = pool.ListRefs(t.Context(), ep, nil, nil, known); err != nil || len(listed) == 0 {
				t.Errorf("old %v, moved to %s: %v, %v", old, second, listed, err)
			}
		}
	}
}

func TestAnnotatedTags(t *testing.T) {
	const name = "06-annotated-tags"
	var c struct {
		MapContains map[string]string `json:"map_contains"`
	}
	gittest.Case(t, name, &c)
	for _, tt := range []struct {
		file string
		on   string
	}{{"v0.bin", getRefs}, {"v2-lsrefs.bin", postRefs}} {
		t.Run(tt.file, func(t *testing.T) {
			server := serve(t, map[string]answer{tt.on: {Status: 200, body: gittest.CaseFile(t, name, tt.file)}})
			refs, err := list(t, server.URL+repo, nil, nil)
			if err != nil {
				t.Fatal(err)
			}
			for ref, id := range c.MapContains {
				if refs[ref] != id {
					t.Errorf("refs[%q] = %q, want %q", ref, refs[ref], id)
				}
			}
			exact, err := list(t, server.URL+repo, nil, []string{"refs/tags/v1"})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.MapContains, exact); diff != "" {
				t.Errorf("exactly refs/tags/v1 (-want +got):\n%s", diff)
			}
		})
	}
}

func TestEmptyRepositories(t *testing.T) {
	const name = "08-empty-repository"
	for file, on := range map[string]string{
		"v0-flush-only.bin":           getRefs,
		"v0-zero-id.bin":              getRefs,
		"v0-receive-pack-zero-id.bin": getRefs,
		"v2-lsrefs-flush.bin":         postRefs,
		"v2-lsrefs-unborn.bin":        postRefs,
	} {
		t.Run(file, func(t *testing.T) {
			server := serve(t, map[string]answer{on: {Status: 200, body: gittest.CaseFile(t, name, file)}})
			refs, err := list(t, server.URL+repo, nil, nil)
			if err != nil || len(refs) != 0 {
				t.Errorf("refs %v, error %v, want none and none", refs, err)
			}
		})
	}
}

func TestOddRefNames(t *testing.T) {
	const name = "10-odd-ref-names"
	var c struct {
		Expect []struct {
			Ref, SHA string
		}
		Rejected []string `json:"rejected_config_refs"`
	}
	gittest.Case(t, name, &c)
	server := serve(t, map[string]answer{postRefs: {Status: 200, body: gittest.CaseFile(t, name, "v2-lsrefs.bin")}})
	for _, e := range c.Expect {
		t.Run(e.Ref, func(t *testing.T) {
			refs, err := list(t, server.URL+repo, nil, []string{e.Ref})
			if err != nil {
				t.Fatal(err)
			}
			if refs[e.Ref] != e.SHA || e.SHA == "" && len(refs) > 0 {
				t.Errorf("refs %v, want %q at %q", refs, e.Ref, e.SHA)
			}
		})
	}
	server.requests()
	for _, ref := range c.Rejected {
		if err := gitwire.CheckRefName(ref); !errors.Is(err, gitwire.ErrRefName) {
			t.Errorf("CheckRefName(%q) = %v, want ErrRefName", ref, err)
		}
		if _, err := list(t, server.URL+repo, nil, []string{ref}); !errors.Is(err, gitwire.ErrRefName) {
			t.Errorf("listing %q: %v, want ErrRefName", ref, err)
		}
	}
	if asked := server.requests(); len(asked) != 0 {
		t.Errorf("asked %q for refs that cannot be", asked)
	}
}

func TestHalfAnAnswerIsAnError(t *testing.T) {
	const name = "11-truncated-or-not-git"
	var c struct {
		TrackingRef string `json:"tracking_ref"`
		Expect      []struct {
			File, Kind, Outcome, SHA string
			Text                     string `json:"text_contains"`
		}
	}
	gittest.Case(t, name, &c)
	for _, e := range c.Expect {
		t.Run(e.File, func(t *testing.T) {
			on := postRefs
			if e.Kind == "adv" {
				on = getRefs
			}
			a := answer{Status: 200, BodyFile: e.File, body: gittest.CaseFile(t, name, e.File)}
			server := serve(t, map[string]answer{on: a})
			refs, err := list(t, server.URL+repo, nil, []string{c.TrackingRef})
			got := "ok"
			switch {
			case err != nil:
				got = "error"
			case len(refs) == 0:
				got = "not-advertised"
			}
			if got != e.Outcome {
				t.Fatalf("%s: refs %v, error %v", got, refs, err)
			}
			if refs[c.TrackingRef] != e.SHA {
				t.Errorf("refs %v, want %q", refs, e.SHA)
			}
			if e.Text != "" && !strings.Contains(fmt.Sprint(err), e.Text) {
				t.Errorf("error %v, want it to say %q", err, e.Text)
			}
			if err != nil && len(err.Error()) > 400 {
				t.Errorf("error of %d bytes", len(err.Error()))
			}
		})
	}
}
