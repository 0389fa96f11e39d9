package watchcommit

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	recorded "github.com/tidemark-dev/tidemark/shared/kubetest/replay"
)

// scenario makes up a session: users change, delete and make again the objects of some types, controllers write
// statuses in between, and the audit events come later than the watch events, in batches.
type scenario struct {
	session *recorded.Session
	random  *rand.Rand
	rv      int
	uid     int
	at      time.Duration
	live    map[string]*unstructured.Unstructured
	batch   []map[string]any
	late    time.Duration // how much later than its watch event an audit event comes
}

var scenarioTypes = []struct {
	gvr  schema.GroupVersionResource
	kind string
}{
	{schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}, "ConfigMap"},
	{schema.GroupVersionResource{Version: "v1", Resource: "services"}, "Service"},
	{schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}, "Deployment"},
}

var users = []string{"alice", "bob", "carol", "dave", "system:serviceaccount:shop:deployer"}

// stamp0 is when a scenario begins.
var stamp0 = time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC)

// newScenario begins with so many objects of each type, old-0, old-1, ….
func newScenario(seed uint64, initial int) *scenario {
	sc := &scenario{
		session: &recorded.Session{Name: fmt.Sprintf("scenario-%d", seed)}, random: rand.New(rand.NewPCG(seed, 1)),
		rv: 100, live: map[string]*unstructured.Unstructured{},
	}
	for _, ty := range scenarioTypes {
		w := &recorded.Watch{GroupVersionResource: ty.gvr, Kind: ty.kind, Namespaced: true}
		for i := range initial {
			o := sc.object(w, fmt.Sprintf("old-%d", i))
			sc.live[key(w, o)] = o
			w.Initial = append(w.Initial, recorded.Event{Type: "ADDED", Object: o})
		}
		sc.session.Watches = append(sc.session.Watches, w)
	}
	sc.rv++
	for _, w := range sc.session.Watches {
		w.BaseRV = strconv.Itoa(sc.rv)
	}
	return sc
}

// scenarioOf makes a session of so many changes, one every step.
func scenarioOf(seed uint64, changes int, step, late time.Duration) *recorded.Session {
	sc := newScenario(seed, 3)
	for range changes {
		sc.at += step
		sc.late = time.Duration(sc.random.Int64N(int64(late) + 1))
		sc.change()
		if sc.random.IntN(4) == 0 {
			sc.post()
		}
	}
	sc.post()
	return sc.session
}

func key(w *recorded.Watch, o *unstructured.Unstructured) string {
	return w.Resource + "/" + o.GetNamespace() + "/" + o.GetName()
}

func (sc *scenario) object(w *recorded.Watch, name string) *unstructured.Unstructured {
	sc.rv++
	sc.uid++
	o := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": w.GroupVersionResource.GroupVersion().String(), "kind": w.Kind,
		"metadata": map[string]any{
			"namespace": "shop", "name": name, "uid": fmt.Sprintf("uid-%d", sc.uid), "resourceVersion": strconv.Itoa(sc.rv),
			"creationTimestamp": sc.now().Format(time.RFC3339),
		},
		"spec": map[string]any{"step": "0"},
	}}
	return o
}

func (sc *scenario) now() time.Time { return stamp0.Add(sc.at) }

// change makes one user's request, or a controller's status write.
func (sc *scenario) change() {
	w := sc.session.Watches[sc.random.IntN(len(sc.session.Watches))]
	name := fmt.Sprintf("o-%d", sc.random.IntN(6))
	user := users[sc.random.IntN(len(users))]
	_, there := sc.live[w.Resource+"/shop/"+name]
	switch dice := sc.random.IntN(10); {
	case !there:
		sc.create(w, name, user)
	case dice == 0:
		sc.condemn(w, name, user)
		sc.bury(w, name)
	case dice == 1:
		sc.remove(w, name, user)
	case dice < 4:
		sc.status(w, name)
	default:
		sc.update(w, name, user, []string{"update", "patch"}[sc.random.IntN(2)])
	}
}

func (sc *scenario) watch(resource string) *recorded.Watch {
	for _, w := range sc.session.Watches {
		if w.Resource == resource {
			return w
		}
	}
	panic("no " + resource)
}

func (sc *scenario) create(w *recorded.Watch, name, user string) {
	sc.event(w, "ADDED", sc.object(w, name), user, "create")
}

func (sc *scenario) update(w *recorded.Watch, name, user, verb string) {
	o := sc.next(w, name)
	o.Object["spec"] = map[string]any{"step": o.GetResourceVersion()}
	sc.event(w, "MODIFIED", o, user, verb)
}

func (sc *scenario) status(w *recorded.Watch, name string) {
	o := sc.next(w, name)
	o.Object["status"] = map[string]any{"seen": o.GetResourceVersion()}
	sc.event(w, "MODIFIED", o, "system:serviceaccount:kube-system:controller", "update")
}

func (sc *scenario) remove(w *recorded.Watch, name, user string) {
	sc.event(w, "DELETED", sc.next(w, name), user, "delete")
}

// condemn begins the deletion of an object that a finalizer holds; bury is its end, by a controller.
func (sc *scenario) condemn(w *recorded.Watch, name, user string) {
	o := sc.next(w, name)
	died := metav1.NewTime(sc.now())
	o.SetDeletionTimestamp(&died)
	sc.event(w, "MODIFIED", o, user, "delete")
}

func (sc *scenario) bury(w *recorded.Watch, name string) {
	sc.event(w, "DELETED", sc.next(w, name), "system:serviceaccount:kube-system:cleaner", "patch")
}

// next is the object in its next version.
func (sc *scenario) next(w *recorded.Watch, name string) *unstructured.Unstructured {
	o := sc.live[w.Resource+"/shop/"+name].DeepCopy()
	sc.rv++
	o.SetResourceVersion(strconv.Itoa(sc.rv))
	return o
}

// event records what the watch delivers, the audit event of the request, and the truth.
func (sc *scenario) event(w *recorded.Watch, kind string, o *unstructured.Unstructured, user, verb string) {
	w.Live = append(w.Live, recorded.Event{At: sc.at, Type: kind, Object: o})
	before := ""
	if old := sc.live[key(w, o)]; old != nil {
		before = old.GetResourceVersion()
	}
	if kind == "DELETED" {
		delete(sc.live, key(w, o))
	} else {
		sc.live[key(w, o)] = o
	}
	sc.session.Truth = append(sc.session.Truth, recorded.Truth{
		Resource: w.Resource, Group: w.Group, Namespace: o.GetNamespace(), Name: o.GetName(), UID: string(o.GetUID()),
		RV: o.GetResourceVersion(), Type: kind, Actor: user, Knowable: "exact",
	})
	ref := map[string]any{"apiGroup": w.Group, "apiVersion": w.Version, "resource": w.Resource, "namespace": o.GetNamespace(), "name": o.GetName()}
	if verb == "update" { // a PUT names what it replaces
		ref["uid"], ref["resourceVersion"] = string(o.GetUID()), before
	}
	audit := map[string]any{
		"level": "RequestResponse", "auditID": fmt.Sprintf("audit-%d", sc.rv), "stage": "ResponseComplete", "verb": verb,
		"user":           map[string]any{"username": user},
		"objectRef":      ref,
		"responseStatus": map[string]any{"code": 200}, "responseObject": o.Object,
		"requestReceivedTimestamp": sc.now().Format(metav1.RFC3339Micro), "stageTimestamp": sc.now().Add(time.Millisecond).Format(metav1.RFC3339Micro),
	}
	if verb == "create" {
		audit["responseStatus"] = map[string]any{"code": 201}
	}
	if kind == "DELETED" {
		if verb != "delete" { // whoever removed the last finalizer shows the version before
			shown := o.DeepCopy()
			shown.SetResourceVersion(before)
			audit["responseObject"] = shown.Object
		} else {
			details := map[string]any{"name": o.GetName(), "kind": w.Resource, "uid": string(o.GetUID())}
			audit["responseObject"] = map[string]any{"kind": "Status", "apiVersion": "v1", "status": "Success", "details": details}
			audit["responseStatus"] = map[string]any{"code": 200, "details": details}
		}
	}
	sc.batch = append(sc.batch, audit)
}

// post sends the batch that has come together, shuffled, late by so much.
func (sc *scenario) post() {
	if len(sc.batch) == 0 {
		return
	}
	sc.random.Shuffle(len(sc.batch), func(i, j int) { sc.batch[i], sc.batch[j] = sc.batch[j], sc.batch[i] })
	body, err := json.Marshal(map[string]any{"kind": "EventList", "apiVersion": "audit.k8s.io/v1", "items": sc.batch})
	if err != nil {
		panic(err) // of our own making
	}
	sc.batch = nil
	at := sc.at + sc.late
	if n := len(sc.session.Audit); n > 0 {
		at = max(at, sc.session.Audit[n-1].At)
	}
	sc.session.Audit = append(sc.session.Audit, recorded.AuditPost{At: at, Route: "default", Body: body})
}
