package replay

import (
	"net/http"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var verbs = []string{"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"}

// discover serves the documents that tell what is served: the aggregated one to who asks for it, else the older three.
func (s *Server) discover(w http.ResponseWriter, r *http.Request, parts []string) {
	core := parts[0] == "api"
	served := s.served(core)
	switch {
	case len(parts) == 1 && strings.Contains(r.Header.Get("Accept"), "as=APIGroupDiscoveryList"):
		aggregated(w, served)
	case len(parts) == 1 && core:
		answer(w, metav1.APIVersions{TypeMeta: metav1.TypeMeta{Kind: "APIVersions"}, Versions: []string{"v1"}})
	case len(parts) == 1:
		list := metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}, Groups: []metav1.APIGroup{}}
		for _, g := range served {
			list.Groups = append(list.Groups, apiGroup(g))
		}
		answer(w, list)
	case core || len(parts) == 3:
		version, group := parts[len(parts)-1], ""
		if !core {
			group = parts[1]
		}
		for _, g := range served {
			if g.name == group && g.version == version {
				resources(w, g)
				return
			}
		}
		http.Error(w, "404 page not found", http.StatusNotFound)
	default:
		for _, g := range served {
			if g.name == parts[1] {
				answer(w, apiGroup(g))
				return
			}
		}
		http.Error(w, "404 page not found", http.StatusNotFound)
	}
}

// group is one version of one API group; a recording holds one version of each.
type group struct {
	name, version string
	stores        []*store
}

func (g group) groupVersion() string {
	if g.name == "" {
		return g.version
	}
	return g.name + "/" + g.version
}

func (s *Server) served(core bool) []group {
	var groups []group
next:
	for _, st := range s.stores {
		if (st.Group == "") != core || st.ServedFrom > s.clock.Now() {
			continue
		}
		for i := range groups {
			if groups[i].name == st.Group && groups[i].version == st.Version {
				groups[i].stores = append(groups[i].stores, st)
				continue next
			}
		}
		groups = append(groups, group{st.Group, st.Version, []*store{st}})
	}
	return groups
}

func apiGroup(g group) metav1.APIGroup {
	v := metav1.GroupVersionForDiscovery{GroupVersion: g.groupVersion(), Version: g.version}
	return metav1.APIGroup{Name: g.name, Versions: []metav1.GroupVersionForDiscovery{v}, PreferredVersion: v}
}

func resources(w http.ResponseWriter, g group) {
	list := metav1.APIResourceList{TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}, GroupVersion: g.groupVersion()}
	for _, st := range g.stores {
		list.APIResources = append(list.APIResources, metav1.APIResource{
			Name: st.Resource, SingularName: strings.ToLower(st.Kind), Namespaced: st.Namespaced, Kind: st.Kind, Verbs: verbs,
		})
	}
	answer(w, list)
}

func aggregated(w http.ResponseWriter, groups []group) {
	items := []any{}
	for _, g := range groups {
		var res []any
		for _, st := range g.stores {
			scope := "Cluster"
			if st.Namespaced {
				scope = "Namespaced"
			}
			res = append(res, map[string]any{
				"resource": st.Resource, "singularResource": strings.ToLower(st.Kind), "scope": scope, "verbs": verbs,
				"responseKind": map[string]any{"group": g.name, "version": g.version, "kind": st.Kind},
			})
		}
		items = append(items, map[string]any{
			"metadata": map[string]any{"name": g.name},
			"versions": []any{map[string]any{"version": g.version, "freshness": "Current", "resources": res}},
		})
	}
	w.Header().Set("Vary", "Accept")
	body := map[string]any{"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": map[string]any{}, "items": items}
	answerAs(w, "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList", body)
}
