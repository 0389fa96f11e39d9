package manifest

import (
	"encoding/json"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	yamlv3 "go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// decode reads JSON as client-go's dynamic client does: integers stay integers.
func decode(t *testing.T, text string) map[string]any {
	t.Helper()
	var u unstructured.Unstructured
	if err := u.UnmarshalJSON([]byte(text)); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return u.Object
}

func TestRenderKeepsWhatPeopleWroteAndDropsWhatTheServerWrote(t *testing.T) {
	cases := []struct{ name, in, want string }{
		{
			name: "server metadata, status and client noise go; own annotations stay; unknown fields stay",
			in: `{"apiVersion":"example.test/v1","kind":"Widget","zeta":1,"alpha":{"b":[],"a":{}},"status":{"x":"y"},
				"metadata":{"name":"w","namespace":"shop","uid":"u","resourceVersion":"7","generation":3,"creationTimestamp":"2026-03-01T10:00:00Z",
				"selfLink":"/x","managedFields":[{"manager":"m"}],"ownerReferences":[{"kind":"A","name":"a"}],"generateName":"w-",
				"annotations":{"kubectl.kubernetes.io/last-applied-configuration":"{}","kubernetes.io/change-cause":"prices up","pv.kubernetes.io/bind-completed":"yes"},
				"finalizers":["example.test/hold","foregroundDeletion","kubernetes.io/pvc-protection"]}}`,
			want: `apiVersion: example.test/v1
kind: Widget
metadata:
  annotations:
    kubernetes.io/change-cause: prices up
  finalizers:
  - example.test/hold
  generateName: w-
  name: w
  namespace: shop
  ownerReferences:
  - kind: A
    name: a
alpha:
  a: {}
  b: []
zeta: 1
`,
		},
		{
			name: "annotations of controllers only leave no empty map; an empty map that a client sent stays",
			in: `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web","labels":{},"annotations":{"deployment.kubernetes.io/revision":"4"}},
				"spec":{"template":{"metadata":{"creationTimestamp":null,"annotations":{"kubectl.kubernetes.io/restartedAt":"2026-03-01T10:00:00Z"}}},
				"volumeClaimTemplates":[{"metadata":{"creationTimestamp":null,"name":"d"}}]}}`,
			want: `apiVersion: apps/v1
kind: Deployment
metadata:
  labels: {}
  name: web
spec:
  template:
    metadata:
      annotations:
        kubectl.kubernetes.io/restartedAt: "2026-03-01T10:00:00Z"
  volumeClaimTemplates:
  - metadata:
      name: d
`,
		},
		{
			name: "an assigned cluster address goes, a chosen node port stays",
			in: `{"apiVersion":"v1","kind":"Service","metadata":{"name":"web"},"spec":{"clusterIP":"10.0.0.7","clusterIPs":["10.0.0.7"],
				"healthCheckNodePort":31000,"ports":[{"port":80,"nodePort":30080}],"type":"NodePort"}}`,
			want: `apiVersion: v1
kind: Service
metadata:
  name: web
spec:
  ports:
  - nodePort: 30080
    port: 80
  type: NodePort
`,
		},
		{
			name: "a Namespace loses the finalizer and the label that each one gets, and keeps its own",
			in: `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"shop","labels":{"kubernetes.io/metadata.name":"shop","team":"retail"}},
				"spec":{"finalizers":["kubernetes"]},"status":{"phase":"Active"}}`,
			want: `apiVersion: v1
kind: Namespace
metadata:
  labels:
    team: retail
  name: shop
`,
		},
		{
			name: "generated token secrets go, a named one stays",
			in: `{"apiVersion":"v1","kind":"ServiceAccount","metadata":{"name":"bot"},"secrets":[{"name":"bot-token-x7k2p"},{"name":"vault"},{"name":"bot-token-mine"}],
				"imagePullSecrets":[{"name":"bot-dockercfg-a1b2c"}]}`,
			want: `apiVersion: v1
kind: ServiceAccount
metadata:
  name: bot
secrets:
- name: vault
- name: bot-token-mine
`,
		},
		{
			name: "computed rules go, written rules stay",
			in: `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRole","metadata":{"name":"agg"},"aggregationRule":{"clusterRoleSelectors":[]},
				"rules":[{"verbs":["get"]}]}`,
			want: `apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: agg
aggregationRule:
  clusterRoleSelectors: []
`,
		},
		{
			name: "a Job's generated selector and labels go",
			in: `{"apiVersion":"batch/v1","kind":"Job","metadata":{"name":"j","labels":{"batch.kubernetes.io/job-name":"j","app":"a"}},
				"spec":{"selector":{"matchLabels":{"controller-uid":"u"}},"template":{"metadata":{"labels":{"controller-uid":"u","job-name":"j"}},"spec":{}}}}`,
			want: `apiVersion: batch/v1
kind: Job
metadata:
  labels:
    app: a
  name: j
spec:
  template:
    metadata: {}
    spec: {}
`,
		},
		{
			name: "a volume keeps the name of its claim, a Pod not its node",
			in:   `{"apiVersion":"v1","kind":"PersistentVolume","metadata":{"name":"pv"},"spec":{"claimRef":{"name":"c","namespace":"shop","uid":"u","resourceVersion":"9"}}}`,
			want: `apiVersion: v1
kind: PersistentVolume
metadata:
  name: pv
spec:
  claimRef:
    name: c
    namespace: shop
`,
		},
		{
			name: "the numbers of other kinds' fields of the same name are left alone",
			in:   `{"apiVersion":"example.test/v1","kind":"Service","metadata":{"name":"s"},"spec":{"clusterIP":"10.0.0.7","nodeName":"node-1"}}`,
			want: `apiVersion: example.test/v1
kind: Service
metadata:
  name: s
spec:
  clusterIP: "10.0.0.7"
  nodeName: node-1
`,
		},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			obj := decode(t, c.in)
			before := clone(obj)
			got, err := Render(obj)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, string(got)); diff != "" {
				t.Errorf("in %s\n(-want +got)\n%s", c.in, diff)
			}
			if !reflect.DeepEqual(before, any(obj)) {
				t.Errorf("Render changed the caller's object")
			}
		})
	}
}

func TestRenderRefuses(t *testing.T) {
	secret := map[string]any{"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": "token"}, "data": map[string]any{"t": "czNjcjN0"}}
	if _, err := Render(secret); !errors.Is(err, ErrSecret) || strings.Contains(err.Error(), "czNjcjN0") {
		t.Errorf("a Secret: got %v, want ErrSecret without its data", err)
	}
	for name, obj := range map[string]map[string]any{
		"no kind":     {"apiVersion": "v1", "metadata": map[string]any{"name": "a"}},
		"no name":     {"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{}},
		"no metadata": {"apiVersion": "v1", "kind": "ConfigMap"},
		"a Go value":  {"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "a"}, "x": struct{}{}},
	} {
		if out, err := Render(obj); err == nil {
			t.Errorf("%s: got %q, want an error", name, out)
		}
	}
}

// The recorded case of objects that have no spec, or unusual ones: everything but the server's part survives.
func TestObjectsThatAreNotSpecShaped(t *testing.T) {
	raw, err := os.ReadFile("../../events/samples/cases/join/15-objects-that-are-not-spec-shaped/input.json")
	if err != nil {
		t.Fatal(err)
	}
	var input struct{ Objects []json.RawMessage }
	if err := json.Unmarshal(raw, &input); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"StorageClass":   `{"apiVersion":"storage.k8s.io/v1","kind":"StorageClass","metadata":{"name":"fast"},"provisioner":"csi.example.test","reclaimPolicy":"Retain","allowVolumeExpansion":true,"parameters":{"tier":"gold"}}`,
		"PriorityClass":  `{"apiVersion":"scheduling.k8s.io/v1","kind":"PriorityClass","metadata":{"name":"high"},"value":1000,"globalDefault":false}`,
		"ConfigMap":      `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"flags","namespace":"shop"},"immutable":true,"data":{"a":"on","b":"0123","c":"1e3","d":"null","e":"line1\nline2  \n"}}`,
		"ServiceAccount": `{"apiVersion":"v1","kind":"ServiceAccount","metadata":{"name":"bot","namespace":"shop"},"automountServiceAccountToken":false,"imagePullSecrets":[{"name":"reg"}]}`,
		"Service":        `{"apiVersion":"v1","kind":"Service","metadata":{"name":"db","namespace":"shop"},"spec":{"clusterIP":"None","clusterIPs":["None"],"internalTrafficPolicy":"Local","ports":[{"port":5432}]}}`,
		"ClusterRole":    `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRole","metadata":{"name":"agg"},"aggregationRule":{"clusterRoleSelectors":[{"matchLabels":{"a":"b"}}]}}`,
		"Widget":         `{"apiVersion":"example.test/v1","kind":"Widget","metadata":{"name":"w","namespace":"shop"},"config":{"a":9007199254740993}}`,
		"Deployment":     `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web","namespace":"shop"},"spec":{"template":{"metadata":{"labels":{"a":"b"}}}}}`,
	}
	if len(input.Objects) != len(want) {
		t.Fatalf("the case holds %d objects, the test knows %d", len(input.Objects), len(want))
	}
	for _, in := range input.Objects {
		obj := decode(t, string(in))
		out, err := Render(obj)
		if err != nil {
			t.Fatal(err)
		}
		kind := obj["kind"].(string)
		if diff := cmp.Diff(decode(t, want[kind]), readBack(t, out)); diff != "" {
			t.Errorf("%s (-want +got)\n%s\n%s", kind, diff, out)
		}
	}
}

// readBack reads YAML as kubectl does, integers exact.
func readBack(t *testing.T, out []byte) map[string]any {
	t.Helper()
	j, err := yaml.YAMLToJSON(out)
	if err != nil {
		t.Fatalf("%v in\n%s", err, out)
	}
	return decode(t, string(j))
}

// Every recorded object renders, reads back as what was kept, and a second rendering of what was read is the same.
func TestRecordedObjectsReadBackTheSame(t *testing.T) {
	files, _ := filepath.Glob("../../events/samples/*/*/watch/*.jsonl")
	more, _ := filepath.Glob("../../events/samples/corpus/watch/*.jsonl")
	seen := 0
	for _, file := range append(files, more...) {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(raw)) {
			var entry struct {
				Event  struct{ Object json.RawMessage }
				Object json.RawMessage
			}
			if err := json.Unmarshal([]byte(line), &entry); err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			body := entry.Event.Object
			if body == nil {
				body = entry.Object
			}
			if body == nil {
				continue
			}
			obj := decode(t, string(body))
			if _, named, _ := unstructured.NestedString(obj, "metadata", "name"); !named {
				continue // a bookmark
			}
			out, err := Render(obj)
			if obj["kind"] == "Secret" {
				if !errors.Is(err, ErrSecret) {
					t.Errorf("%s: a Secret: got %v, want ErrSecret", file, err)
				}
				continue
			}
			if err != nil {
				t.Errorf("%s: %v", file, err)
				continue
			}
			again, err := Render(readBack(t, out))
			if err != nil || string(again) != string(out) {
				t.Errorf("%s: rendering what was read back gives %v\n%s\nwant\n%s", file, err, again, out)
			}
			seen++
		}
	}
	if seen < 200 {
		t.Errorf("only %d recorded objects were rendered", seen)
	}
}

// Any string comes back as that string from three readers: kubectl's, a YAML 1.1 one and a YAML 1.2 one.
func TestEveryStringReadsBackAsItself(t *testing.T) {
	texts := []string{
		"", " ", "on", "On", "y", "N", "yes", "0123", "1e3", "1E3", "0o17", "0x1F", "0b1", "1_000", "12:30:45", "190:20:30", "null", "Null", "~",
		".inf", "-.INF", ".nan", "2026-03-01", "2026-03-01T10:00:00Z", "<<", "=", "-", "- a", "? a", ": a", "a: b", "a #b", "#a", "!a", "&a", "*a",
		"%a", "@a", "`a", "|", ">", "{a}", "[a]", "'a'", `"a"`, "a:", "a: ", "true", "line1\nline2  \n", "\n", "\n\n", "\na", "a\n", "a\n\n", "a\n\n\n",
		" a\nb", "\ta\nb", "a\n b\n", "a\n\tb", "a\r\nb", "a\rb", "a\u0085b\n", "a\u2028b\nc", "\ufeffa", "a\x00b", "a\x7fb\nc", "a\x1b[31m\nb", "---", "...",
		"--- a\nb", "a\n---\nb", "a\n...\nb", "a\n# b\n", "#!/bin/sh\nset -e\n\tls  \n", "🦄", "🦄\nplain\n", "Grüße, Jürgen", "\u202egnp.exe", "a\n ", "a \nb",
		strings.Repeat("long ", 100), strings.Repeat("x", 5000), strings.Repeat("key: value # no comment\n", 50), "sha256:abc", "http://a/b?c=d&e", "a\u00a0b",
		"yes\nno\n", "key: |\n  a\n  b\n", "  \n  ", "\\n", `a\`, `C:\x`, "\u200f", "+1", "-1", "+.5", ".5", "5.", "0.", "NaN", "1.", "0", "00", "-0",
	}
	alphabet := []rune("aZ09 \n\n\t:#-?!&*|>'\"%@`{}[],~=<\\./_\r\u0085\u2028\u2029\ufeff\u00e9\U0001f984\x00\x1b\x7f")
	rnd := rand.New(rand.NewPCG(7, 11))
	for range 1500 {
		r := make([]rune, rnd.IntN(14))
		for i := range r {
			r[i] = alphabet[rnd.IntN(len(alphabet))]
		}
		texts = append(texts, string(r))
	}
	for _, s := range texts {
		obj := map[string]any{
			"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "a"},
			"data": map[string]any{"value": s, "k" + s: "key"}, "list": []any{s, map[string]any{"deep": map[string]any{"er": s}}},
		}
		out, err := Render(obj)
		if err != nil {
			t.Fatalf("%q: %v", s, err)
		}
		if diff := cmp.Diff(obj, readBack(t, out)); diff != "" {
			t.Errorf("%q, kubectl's reader (-want +got)\n%s\n%s", s, diff, out)
		}
		var v3 map[string]any
		if err := yamlv3.Unmarshal(out, &v3); err != nil {
			t.Errorf("%q: %v\n%s", s, err, out)
		} else if diff := cmp.Diff(obj, v3); diff != "" {
			t.Errorf("%q, YAML 1.2 reader (-want +got)\n%s\n%s", s, diff, out)
		}
	}
}

func TestNumbersKeepEveryDigit(t *testing.T) {
	cases := map[string]string{ // as JSON has it → as the file has it
		"9007199254740993": "9007199254740993", "-9223372036854775808": "-9223372036854775808", "9223372036854775807": "9223372036854775807",
		"0": "0", "1.5": "1.5", "1e21": "1.0e+21", "1.25e-9": "1.25e-9", "5.0": "5",
	}
	for in, want := range cases {
		out, err := Render(decode(t, `{"apiVersion":"a/v1","kind":"A","metadata":{"name":"a"},"num":`+in+`}`))
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasSuffix(string(out), "\nnum: "+want+"\n") {
			t.Errorf("%s: got\n%swant num: %s", in, out, want)
		}
	}
	out, err := Render(map[string]any{"apiVersion": "a/v1", "kind": "A", "metadata": map[string]any{"name": "a"}, "num": json.Number("123456789012345678901234567890")})
	if err != nil || !strings.HasSuffix(string(out), "\nnum: 123456789012345678901234567890\n") {
		t.Errorf("got %s %v", out, err)
	}
}

func BenchmarkRender(b *testing.B) {
	raw, err := os.ReadFile("../../events/samples/sessions/story/watch/apps_deployments.jsonl")
	if err != nil {
		b.Fatal(err)
	}
	lines := strings.Split(string(raw), "\n")
	var entry struct {
		Event struct{ Object map[string]any }
	}
	if err := json.Unmarshal([]byte(lines[1]), &entry); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Render(entry.Event.Object); err != nil {
			b.Fatal(err)
		}
	}
}
