package manifest

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestPath(t *testing.T) {
	deployments := schema.GroupResource{Group: "apps", Resource: "deployments"}
	roles := schema.GroupResource{Group: "rbac.authorization.k8s.io", Resource: "clusterroles"}
	cases := []struct {
		target string
		gr     schema.GroupResource
		ns, n  string
		want   string
	}{
		{"clusters/prod", deployments, "shop", "web", "clusters/prod/shop/apps/deployments/web.yaml"},
		{"/clusters/prod/", schema.GroupResource{Resource: "configmaps"}, "shop", "prices", "clusters/prod/shop/configmaps/prices.yaml"},
		{"", schema.GroupResource{Resource: "namespaces"}, "", "shop", "_cluster/namespaces/shop.yaml"},
		{"", roles, "", "system:controller:job", "_cluster/rbac.authorization.k8s.io/clusterroles/system%3acontroller%3ajob.yaml"},
		{"", roles, "", "Admin", "_cluster/rbac.authorization.k8s.io/clusterroles/%41dmin.yaml"},
		{"", roles, "", "100%", "_cluster/rbac.authorization.k8s.io/clusterroles/100%25.yaml"},
		{"", roles, "", "..", "_cluster/rbac.authorization.k8s.io/clusterroles/%2e%2e.yaml"},
		{"", roles, "", ".git", "_cluster/rbac.authorization.k8s.io/clusterroles/%2egit.yaml"},
		{"", roles, "", "é ", "_cluster/rbac.authorization.k8s.io/clusterroles/%c3%a9%20.yaml"},
		{"", schema.GroupResource{Resource: "configmaps"}, "aux", "con.map", "%61ux/configmaps/%63on.map.yaml"},
		{"", schema.GroupResource{Resource: "configmaps"}, "com1", "conf", "%63om1/configmaps/conf.yaml"},
		{"", schema.GroupResource{Resource: "configmaps"}, "_cluster", "a", "%5fcluster/configmaps/a.yaml"},
	}
	for _, c := range cases {
		got := Path(c.target, c.gr, c.ns, c.n)
		if got != c.want {
			t.Errorf("Path(%q, %v, %q, %q): got %s, want %s", c.target, c.gr, c.ns, c.n, got, c.want)
		}
		place, ok := Parse(c.target, got)
		if want := (Place{c.gr, c.ns, c.n}); !ok || place != want {
			t.Errorf("Parse(%q): got %+v %v, want %+v", got, place, ok, want)
		}
	}
}

func TestParseLeavesOtherFilesAlone(t *testing.T) {
	for _, path := range []string{
		"README.md", "prod/README.yaml", "prod/a/b.yaml", "prod/a/b/c/d/e.yaml", "other/shop/configmaps/a.yaml", "prod/shop/configmaps/A.yaml",
		"prod/shop/configmaps/%41.yml", "prod/shop/configmaps/%4.yaml", "prod/shop/configmaps/%zz.yaml", "prod/shop/configmaps/%61.yaml",
		"prod/shop/configmaps/.yaml", "prod/.tidemark", "production/shop/configmaps/a.yaml", "prod/_x/configmaps/a.yaml",
	} {
		if place, ok := Parse("prod", path); ok {
			t.Errorf("%s: got %+v, want no place", path, place)
		}
	}
}

var portable = regexp.MustCompile(`^[a-z0-9._%-]+$`)
var device = regexp.MustCompile(`^(con|prn|aux|nul|com[0-9]|lpt[0-9])(\.|$)`)

// Names are drawn from an alphabet of trouble, short enough that close names meet often.
func TestPathsAreInjectiveAndPortable(t *testing.T) {
	alphabet := []string{"a", "A", "b", ".", "%", ":", "_", "-", " ", "é", "e\u0301", "É", "2", "5", "con", "CON", "aux", "lpt1", "~", "*", "\\", "\x00", "configmaps", "yaml", "apps"}
	rnd := rand.New(rand.NewPCG(3, 5))
	word := func() string {
		var b strings.Builder
		for range 1 + rnd.IntN(4) {
			b.WriteString(alphabet[rnd.IntN(len(alphabet))])
		}
		return b.String()
	}
	objects := map[string]string{} // path → object
	folders := map[string]string{}
	for range 60_000 {
		gr := schema.GroupResource{Resource: word()}
		if rnd.IntN(2) == 0 {
			gr.Group = word()
		}
		ns := ""
		if rnd.IntN(3) > 0 {
			ns = word()
		}
		name := word()
		object := fmt.Sprintf("%q %q %q %q", gr.Group, gr.Resource, ns, name)
		path := Path("", gr, ns, name)
		folded := strings.ToLower(path)
		if other, taken := objects[folded]; taken && other != object {
			t.Fatalf("%s and %s share %s", object, other, path)
		}
		objects[folded] = object
		parts := strings.Split(path, "/")
		for i, part := range parts {
			bad := part == "." || part == ".." || part == ".git" || strings.HasSuffix(part, ".") || strings.HasPrefix(part, "-") || device.MatchString(part)
			if bad || len(part) > 255 || !portable.MatchString(part) {
				t.Fatalf("%s lies in %s: the part %q is not portable", object, path, part)
			}
			if i < len(parts)-1 {
				folders[strings.Join(parts[:i+1], "/")] = object
			}
		}
		if place, ok := Parse("", path); !ok || place != (Place{gr, ns, name}) {
			t.Fatalf("%s lies in %s, which reads as %+v %v", object, path, place, ok)
		}
	}
	for path, object := range objects {
		if other, taken := folders[path]; taken {
			t.Errorf("the file of %s is a folder of %s: %s", object, other, path)
		}
	}
}

func TestLongNamesAreCutAndStayApart(t *testing.T) {
	gr := schema.GroupResource{Resource: "configmaps"}
	seen := map[string]bool{}
	for _, name := range []string{
		strings.Repeat("a", 253), strings.Repeat("a", 252) + "b", strings.Repeat("a", 251), strings.Repeat(":", 253), strings.Repeat("a:", 126),
		strings.Repeat(":", 84), "x" + strings.Repeat(":", 84), "xy" + strings.Repeat(":", 84), strings.Repeat("é", 4000),
	} {
		path := Path("prod", gr, "shop", name)
		file := path[strings.LastIndexByte(path, '/')+1:]
		if len(file) > 255 || seen[path] {
			t.Errorf("%d bytes of name: %s (%d bytes, seen before: %v)", len(name), file, len(file), seen[path])
		}
		seen[path] = true
		if place, ok := Parse("prod", path); !ok || place.Namespace != "shop" || place.GroupResource != gr {
			t.Errorf("%s reads as %+v %v", path, place, ok)
		}
	}
	exact := strings.Repeat("a", 250)
	if got := Path("", gr, "shop", exact); got != "shop/configmaps/"+exact+".yaml" {
		t.Errorf("250 bytes fit and are not cut: got %s", got)
	}
}
