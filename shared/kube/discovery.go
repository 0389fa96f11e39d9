package kube

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// maxDiscoveryBytes bounds what one discovery answer may hold in memory; a cluster with 2,000 types sends about 4 MB.
const maxDiscoveryBytes = 32 << 20

// acceptAggregated asks for every group in one answer; servers before 1.27 answer with the plain list of groups.
const acceptAggregated = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList," +
	"application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json"

// Resource is where the API server serves something that can be watched.
type Resource struct {
	schema.GroupVersionResource
	Kind       string
	Namespaced bool
}

// NotServed says why a resource cannot be watched. It is a matter for a person, not a failure of the moment.
type NotServed struct {
	Resource schema.GroupResource
	// Temporary is set when the group exists but the extension API server behind it does not answer.
	Temporary bool
	Why       string
}

func (n *NotServed) Error() string { return fmt.Sprintf("%s: %s", n.Resource, n.Why) }

// Resolve finds each resource in the version that the API server prefers among those that serve it with list and
// watch. What cannot be watched is in the second map; the error is for when the API server could not be asked. It
// costs one request, two when core and named groups are mixed, and an unchanged answer is not sent again.
func (c *Client) Resolve(ctx context.Context, wanted []schema.GroupResource) (map[schema.GroupResource]Resource, map[schema.GroupResource]*NotServed, error) {
	served := map[schema.GroupResource]Resource{}
	missing := map[schema.GroupResource]*NotServed{}
	byRoot := map[string][]schema.GroupResource{}
	for _, gr := range wanted {
		root := "/apis"
		if gr.Group == "" {
			root = "/api"
		}
		byRoot[root] = append(byRoot[root], gr)
	}
	for root, some := range byRoot {
		groups, err := c.discovery.groups(ctx, root, some)
		if err != nil {
			return nil, nil, fmt.Errorf("discover the API server's resources: %w", err)
		}
		for _, gr := range some {
			found, not := groups.find(gr)
			if not != nil {
				missing[gr] = not
			} else {
				served[gr] = found
			}
		}
	}
	return served, missing, nil
}

// apiGroups is what we read of an aggregated discovery document, by group.
type apiGroups map[string][]apiVersion

type apiVersion struct {
	Version   string        `json:"version"`
	Resources []apiResource `json:"resources"`
	Freshness string        `json:"freshness"`
}

type apiResource struct {
	Resource     string `json:"resource"`
	ResponseKind struct {
		Kind string `json:"kind"`
	} `json:"responseKind"`
	Scope string   `json:"scope"`
	Verbs []string `json:"verbs"`
}

func (g apiGroups) find(gr schema.GroupResource) (Resource, *NotServed) {
	versions, known := g[gr.Group]
	why := "the API server does not serve it"
	stale := false
	for _, v := range versions {
		stale = stale || v.Freshness == "Stale"
		for _, r := range v.Resources {
			if r.Resource != gr.Resource {
				continue
			}
			if !slices.Contains(r.Verbs, "list") || !slices.Contains(r.Verbs, "watch") {
				why = "it cannot be listed and watched"
				continue
			}
			return Resource{GroupVersionResource: gr.WithVersion(v.Version), Kind: r.ResponseKind.Kind, Namespaced: r.Scope == "Namespaced"}, nil
		}
	}
	switch {
	case !known && gr.Group != "":
		why = "the API server does not serve the group " + gr.Group
	case stale:
		why = "the extension API server of " + gr.Group + " does not answer"
	}
	return Resource{}, &NotServed{Resource: gr, Temporary: stale, Why: why}
}

// discovery fetches and remembers discovery documents for as long as the server calls them unchanged.
type discovery struct {
	http *http.Client
	base *url.URL

	mu    sync.Mutex
	known map[string]discovered
}

type discovered struct {
	etag   string
	groups apiGroups
}

func (d *discovery) groups(ctx context.Context, root string, wanted []schema.GroupResource) (apiGroups, error) {
	d.mu.Lock()
	before := d.known[root]
	d.mu.Unlock()
	answer, err := d.get(ctx, root, acceptAggregated, before.etag)
	if err != nil {
		return nil, err
	}
	if answer.unchanged {
		return before.groups, nil
	}
	if !answer.aggregated {
		return d.plain(ctx, root, answer.body, wanted)
	}
	var list struct {
		Items []struct {
			Metadata struct {
				Name string `json:"name"`
			} `json:"metadata"`
			Versions []apiVersion `json:"versions"`
		} `json:"items"`
	}
	if err := json.Unmarshal(answer.body, &list); err != nil {
		return nil, fmt.Errorf("%s: %w", root, err)
	}
	groups := apiGroups{}
	for _, item := range list.Items {
		groups[item.Metadata.Name] = item.Versions
	}
	if answer.etag != "" {
		d.mu.Lock()
		if d.known == nil {
			d.known = map[string]discovered{}
		}
		d.known[root] = discovered{answer.etag, groups}
		d.mu.Unlock()
	}
	return groups, nil
}

// plain reads the older documents: the list of groups, then one document for each version of a wanted group.
func (d *discovery) plain(ctx context.Context, root string, body []byte, wanted []schema.GroupResource) (apiGroups, error) {
	var list struct {
		Versions []string `json:"versions"` // of /api
		Groups   []struct {
			Name      string `json:"name"`
			Preferred struct {
				Version string `json:"version"`
			} `json:"preferredVersion"`
			Versions []struct {
				Version string `json:"version"`
			} `json:"versions"`
		} `json:"groups"`
	}
	if err := json.Unmarshal(body, &list); err != nil {
		return nil, fmt.Errorf("%s: %w", root, err)
	}
	versions := map[string][]string{}
	if root == "/api" {
		versions[""] = list.Versions
	}
	for _, g := range list.Groups {
		versions[g.Name] = []string{g.Preferred.Version}
		for _, v := range g.Versions {
			if v.Version != g.Preferred.Version {
				versions[g.Name] = append(versions[g.Name], v.Version)
			}
		}
	}
	groups := apiGroups{}
	for _, gr := range wanted {
		if _, done := groups[gr.Group]; done {
			continue
		}
		for _, v := range versions[gr.Group] {
			one, err := d.plainVersion(ctx, root, schema.GroupVersion{Group: gr.Group, Version: v})
			if err != nil {
				return nil, err
			}
			groups[gr.Group] = append(groups[gr.Group], one)
		}
	}
	return groups, nil
}

func (d *discovery) plainVersion(ctx context.Context, root string, gv schema.GroupVersion) (apiVersion, error) {
	answer, err := d.get(ctx, root+"/"+gv.String(), "application/json", "")
	var status *statusError
	if errors.As(err, &status) && status.code == http.StatusServiceUnavailable && gv.Group != "" {
		return apiVersion{Version: gv.Version, Freshness: "Stale"}, nil
	}
	if err != nil {
		return apiVersion{}, err
	}
	var list struct {
		Resources []struct {
			Name       string   `json:"name"`
			Namespaced bool     `json:"namespaced"`
			Kind       string   `json:"kind"`
			Verbs      []string `json:"verbs"`
		} `json:"resources"`
	}
	if err := json.Unmarshal(answer.body, &list); err != nil {
		return apiVersion{}, fmt.Errorf("%s/%s: %w", root, gv, err)
	}
	out := apiVersion{Version: gv.Version}
	for _, r := range list.Resources {
		one := apiResource{Resource: r.Name, Scope: "Cluster", Verbs: r.Verbs}
		one.ResponseKind.Kind = r.Kind
		if r.Namespaced {
			one.Scope = "Namespaced"
		}
		out.Resources = append(out.Resources, one)
	}
	return out, nil
}

type answer struct {
	body       []byte
	etag       string
	aggregated bool
	unchanged  bool
}

// statusError is an answer that is not the document.
type statusError struct {
	path string
	code int
}

func (e *statusError) Error() string {
	return fmt.Sprintf("GET %s: the API server answered %d %s", e.path, e.code, http.StatusText(e.code))
}

func (d *discovery) get(ctx context.Context, path, accept, etag string) (answer, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, d.base.JoinPath(path).String(), nil)
	if err != nil {
		return answer{}, err
	}
	req.Header.Set("Accept", accept)
	if etag != "" {
		req.Header.Set("If-None-Match", etag)
	}
	resp, err := d.http.Do(req)
	if err != nil {
		return answer{}, err
	}
	defer resp.Body.Close()
	switch resp.StatusCode {
	case http.StatusOK:
	case http.StatusNotModified:
		return answer{unchanged: true}, nil
	default:
		return answer{}, &statusError{path, resp.StatusCode}
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxDiscoveryBytes+1))
	if err != nil {
		return answer{}, fmt.Errorf("GET %s: %w", path, err)
	}
	if len(body) > maxDiscoveryBytes {
		return answer{}, fmt.Errorf("GET %s: the answer is larger than %d bytes", path, maxDiscoveryBytes)
	}
	_, params, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	return answer{
		body:       body,
		etag:       resp.Header.Get("ETag"),
		aggregated: strings.EqualFold(params["as"], "APIGroupDiscoveryList"),
	}, nil
}
