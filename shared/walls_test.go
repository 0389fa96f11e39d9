package shared_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/tidemark-dev/tidemark/"

// tags are those that programs are shipped with: without them other packages are linked.
const tags = "lambda.norpc,grpcnotrace,noauditv1"

// pkg is what go list says of a package.
type pkg struct {
	ImportPath, Name string
	Imports          []string
	Deps             []string
}

func packages(t *testing.T) map[string]pkg {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-tags", tags, "-json=ImportPath,Name,Imports,Deps", module+"functions/...", module+"shared/...")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	all := map[string]pkg{}
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p pkg
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		all[strings.TrimPrefix(p.ImportPath, module)] = p
	}
	return all
}

// under reports whether the package is at one of the paths or below.
func under(path string, roots ...string) bool {
	return slices.ContainsFunc(roots, func(root string) bool { return path == root || strings.HasPrefix(path, root+"/") })
}

func TestWalls(t *testing.T) {
	all := packages(t)
	if len(all) < 20 {
		t.Fatalf("go list knows %d packages only", len(all))
	}
	for path, p := range all {
		for _, imported := range p.Imports {
			ours, isOurs := strings.CutPrefix(imported, module)
			switch {
			case under(imported, "github.com/aws/aws-lambda-go", "knative.dev/func-go") && !under(path, "shared/host", "shared/bench/hello"):
				t.Errorf("%s imports %s: only shared/host/* may know a platform, and what it is measured beside", path, imported)
			case under(imported, "github.com/redis/go-redis") && !under(path, "shared/queue", "shared/gitpoll", "shared/valkeytest", "shared/bench"):
				t.Errorf("%s imports %s: only the stores may", path, imported)
			case isOurs && under(path, "shared") && under(ours, "functions"):
				t.Errorf("%s imports %s: shared knows no function", path, ours)
			case isOurs && under(path, "functions") && under(ours, "functions") && folder(path) != folder(ours) && folder(path) != "functions/allinone":
				t.Errorf("%s imports %s: functions do not know each other", path, ours)
			}
		}
	}
}

// folder is the function that a package belongs to.
func folder(path string) string {
	parts := strings.SplitN(path, "/", 3)
	return strings.Join(parts[:2], "/")
}

// shipped are the programs that are deployed, and what each may weigh and must not link.
var shipped = []struct {
	function string
	budget   int64 // bytes, stripped
	without  []string
}{
	{"auditingest", 14_000_000, []string{"k8s.io/client-go", "k8s.io/apiserver", "k8s.io/apimachinery/pkg/apis", "github.com/go-git/go-git", "github.com/prometheus"}},
	{"authorcapture", 14_000_000, []string{"k8s.io/client-go", "k8s.io/apiserver", "k8s.io/apimachinery/pkg/apis", "github.com/go-git/go-git", "github.com/prometheus"}},
	{"refsweep", 19_000_000, nil},
	{"watchcommit", 22_000_000, nil},
}

func TestProgramsLinkNoMoreThanTheyNeed(t *testing.T) {
	all := packages(t)
	for path, p := range all {
		if p.Name != "main" || !under(path, "functions") {
			continue
		}
		// With html/template, which only net/rpc's debug page wants, the linker keeps every method there is.
		forbidden := []string{"html/template", "net/rpc"}
		for _, s := range shipped {
			if folder(path) == "functions/"+s.function {
				forbidden = append(forbidden, s.without...)
			}
		}
		for _, dep := range p.Deps {
			if under(dep, forbidden...) {
				t.Errorf("%s links %s", path, dep)
			}
		}
	}
	for _, s := range shipped {
		for _, host := range []string{"knative", "lambda"} {
			if _, ok := all["functions/"+s.function+"/"+host]; !ok {
				t.Errorf("%s has no program for %s", s.function, host)
			}
		}
	}
}

func TestProgramsStayWithinTheirSize(t *testing.T) {
	dir := t.TempDir()
	for _, s := range shipped {
		for _, host := range []string{"knative", "lambda"} {
			out := filepath.Join(dir, s.function+"-"+host)
			cmd := exec.CommandContext(t.Context(), "go", "build", "-tags", tags, "-trimpath", "-ldflags", "-s -w", "-o", out, module+"functions/"+s.function+"/"+host)
			cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
			if text, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("build %s for %s: %v\n%s", s.function, host, err, text)
				continue
			}
			info, err := os.Stat(out)
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%s for %s: %.1f MB of %.0f MB", s.function, host, float64(info.Size())/1e6, float64(s.budget)/1e6)
			if info.Size() > s.budget {
				t.Errorf("%s for %s has %d bytes, want at most %d", s.function, host, info.Size(), s.budget)
			}
		}
	}
}
