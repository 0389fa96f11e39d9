//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/tidemark-dev/tidemark/shared/gittest"
	"github.com/tidemark-dev/tidemark/shared/kubetest"
)

const sixTypes = `
  resources:
  - {resource: configmaps, namespaces: [shop, platform]}
  - {resource: services, namespaces: [shop, platform]}
  - {group: apps, resource: deployments}
  - {group: rbac.authorization.k8s.io, resource: roles, namespaces: [shop, platform]}
  - {group: networking.k8s.io, resource: ingresses}
  - {group: example.com, resource: boats}
  prune: Always
`

const boats = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: boats.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {kind: Boat, plural: boats, singular: boat}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: tidemark-mirrored-boats, labels: {tidemark.dev/aggregate-to-mirrored: "true"}}
rules:
- {apiGroups: [example.com], resources: [boats], verbs: [list, watch]}
`

// kindOf is a type that the chaos works on, with the least object of it.
type kindOf struct {
	gvr  schema.GroupVersionResource
	make func(namespace, name string) *unstructured.Unstructured
}

func plain(apiVersion, kind string, more map[string]any) func(namespace, name string) *unstructured.Unstructured {
	return func(namespace, name string) *unstructured.Unstructured {
		u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": apiVersion, "kind": kind, "metadata": map[string]any{"namespace": namespace, "name": name}}}
		for k, v := range more {
			u.Object[k] = v
		}
		return u.DeepCopy()
	}
}

var six = []kindOf{
	{configMaps, func(ns, name string) *unstructured.Unstructured { return configMap(ns, name, "0") }},
	{schema.GroupVersionResource{Version: "v1", Resource: "services"}, plain("v1", "Service", map[string]any{"spec": map[string]any{"clusterIP": "None", "selector": map[string]any{"app": "a"}}})},
	{deployments, func(ns, name string) *unstructured.Unstructured { return deployment(ns, name, 1) }},
	{schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "roles"}, plain("rbac.authorization.k8s.io/v1", "Role", map[string]any{
		"rules": []any{map[string]any{"apiGroups": []any{""}, "resources": []any{"configmaps"}, "verbs": []any{"get"}}}})},
	{schema.GroupVersionResource{Group: "networking.k8s.io", Version: "v1", Resource: "ingresses"}, plain("networking.k8s.io/v1", "Ingress", map[string]any{
		"spec": map[string]any{"defaultBackend": map[string]any{"service": map[string]any{"name": "a", "port": map[string]any{"number": int64(80)}}}}})},
	{schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "boats"}, plain("example.com/v1", "Boat", map[string]any{"spec": map[string]any{"mast": int64(1)}})},
}

func listings() []kubetest.Listing {
	var out []kubetest.Listing
	for _, k := range six {
		for _, ns := range []string{"shop", "platform"} {
			out = append(out, kubetest.Listing{GVR: k.gvr, Namespace: ns})
		}
	}
	return out
}

// crowd is five people who work on the same objects.
type crowd struct {
	t      *testing.T
	people []*person
	truth  *truth
	locks  sync.Map // of object, so that the order of changes to one object is known
	step   sync.Mutex
	next   int
}

func newCrowd(w *world) *crowd {
	c := &crowd{t: w.t, truth: &truth{}}
	add := func(name string, client dynamic.Interface) {
		c.people = append(c.people, &person{t: w.t, name: name, client: client, truth: c.truth})
	}
	for _, u := range []kubetest.User{kubetest.Alice, kubetest.Bob, kubetest.Dave} {
		add(string(u), w.cluster.Client(u))
	}
	add("carol", w.cluster.ClientFor(w.carol()))
	add("system:serviceaccount:shop:deployer", w.cluster.ClientFor(w.cluster.ServiceAccount("shop", "deployer")))
	return c
}

// work makes changes until n are made, each person at their own pace.
func (c *crowd) work(n int, pause time.Duration) {
	var all sync.WaitGroup
	for i, p := range c.people {
		all.Go(func() {
			random := rand.New(rand.NewPCG(uint64(i), uint64(n)))
			for range n / len(c.people) {
				c.change(p, random)
				time.Sleep(time.Duration(random.Int64N(int64(2 * pause))))
			}
		})
	}
	all.Wait()
}

func (c *crowd) number() int {
	c.step.Lock()
	defer c.step.Unlock()
	c.next++
	return c.next
}

// change makes exactly one change to an object picked at random, and sometimes a re-apply that makes none.
func (c *crowd) change(p *person, random *rand.Rand) {
	kind := six[random.IntN(len(six))]
	namespace, name := []string{"shop", "platform"}[random.IntN(2)], fmt.Sprintf("it-%d", random.IntN(3))
	lock, _ := c.locks.LoadOrStore(object(kind.gvr, namespace, name), &sync.Mutex{})
	lock.(*sync.Mutex).Lock()
	defer lock.(*sync.Mutex).Unlock()
	step := fmt.Sprint(c.number())
	at := p.on(kind.gvr, namespace)
	now, err := at.Get(context.Background(), name, metav1.GetOptions{})
	switch dice := random.IntN(100); {
	case apierrors.IsNotFound(err):
		u := kind.make(namespace, name)
		u.SetAnnotations(map[string]string{"example.com/step": step})
		p.create(kind.gvr, u)
	case err != nil:
		c.t.Errorf("%s reads %s: %v", p.name, name, err)
	case dice < 15:
		p.remove(kind.gvr, namespace, name)
	case dice < 55:
		p.update(kind.gvr, namespace, name, set(step, "metadata", "annotations", "example.com/step"))
	default:
		p.patch(kind.gvr, namespace, name, `{"metadata":{"annotations":{"example.com/step":"`+step+`"}}}`)
		if dice < 70 { // somebody else says the same again
			other := c.people[random.IntN(len(c.people))]
			patch := []byte(`{"metadata":{"annotations":{"example.com/step":"` + step + `"}}}`)
			if _, err := other.on(kind.gvr, namespace).Patch(context.Background(), name, "application/merge-patch+json", patch, metav1.PatchOptions{}); err != nil {
				c.t.Errorf("%s patches %s: %v", other.name, now.GetName(), err)
			}
		}
	}
}

// copies keeps one watchcommit running for each window, ticks it all the time, and kills it at random. Now and then all
// of them are killed at the worst moments: as a push arrives, and when it has landed and nobody was told.
type copies struct {
	w       *world
	mu      sync.Mutex
	running []*function
	kills   int
	atPush  int
}

func (c *copies) run(ctx context.Context, all *sync.WaitGroup, windows ...string) {
	c.running = make([]*function, len(windows))
	for i, window := range windows {
		all.Go(func() { c.runOne(ctx, i, "WATCH_WINDOW="+window) })
	}
	all.Go(func() { c.spoilPushes(ctx) })
}

func (c *copies) runOne(ctx context.Context, i int, window string) {
	random := rand.New(rand.NewPCG(uint64(i), 77))
	for ctx.Err() == nil {
		f, err := tryStart(c.w.t, "watchcommit", append(c.w.settings, window)...)
		if err != nil {
			c.w.t.Errorf("start a copy: %v", err)
			return
		}
		c.mu.Lock()
		c.running[i] = f
		c.mu.Unlock()
		life, die := context.WithTimeout(ctx, time.Second+time.Duration(random.Int64N(int64(3*time.Second))))
		for life.Err() == nil && !f.ended() {
			_, _, _ = f.post(life, "/", "") // killed in the middle, mostly
		}
		die()
		f.kill()
		c.mu.Lock()
		c.kills++
		c.mu.Unlock()
	}
}

// killAll ends all copies at once.
func (c *copies) killAll() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.atPush++
	for _, f := range c.running {
		if f != nil {
			f.kill()
		}
	}
}

func (c *copies) spoilPushes(ctx context.Context) {
	landed := func(rw http.ResponseWriter, r *http.Request, git http.Handler) {
		gittest.LoseAnswer(rw, r, gittest.After(git, c.killAll))
	}
	for turn := 0; ; turn++ {
		select {
		case <-ctx.Done():
			c.w.git.ClearFaults()
			return
		case <-time.After(1500 * time.Millisecond):
		}
		c.w.git.ClearFaults()
		if turn%3 == 0 {
			c.w.git.Inject(gittest.Pushes, 1, gittest.Before(c.killAll))
		} else {
			c.w.git.Inject(gittest.Pushes, 1, landed)
		}
	}
}

func TestFiveHundredChangesWithKillsAndTwoCopies(t *testing.T) {
	// Facts come in lumps, so that one push holds several changes of one object.
	w := newChaos(t, kubetest.Options{AuditMaxWait: 3 * time.Second}, "WATCH_WINDOW=0", "ATTRIBUTION_GRACE=20s", "BRANCH_LEASE=1s")
	people := newCrowd(w)
	copies := &copies{w: w}
	ctx, stop := context.WithCancel(context.Background())
	var all sync.WaitGroup
	copies.run(ctx, &all, "0", "3s")
	people.work(500, 400*time.Millisecond)
	stop()
	all.Wait()
	w.eventually("all changes are in git", func() bool { return countOf(w.records()) >= len(people.truth.done) && w.settled() })
	w.wantHistory(people.truth)
	w.wantTree("clusters/prod", listings()...)
	t.Logf("%d changes, %d kills, at a push %d times, %d commits", len(people.truth.done), copies.kills, copies.atPush, len(w.history()))
	if copies.kills < 10 || copies.atPush == 0 { // on a busy machine few live long enough to push
		t.Errorf("only %d kills, at a push %d times", copies.kills, copies.atPush)
	}
}

// newChaos is a world with the six types, all of them mirrored and empty but for what the cluster itself makes.
func newChaos(t *testing.T, options kubetest.Options, settings ...string) *world {
	t.Helper()
	options.Controllers = []string{kubetest.AggregatedRoles}
	w := newWorld(t, options, sixTypes, settings...)
	w.cluster.ApplyText(boats)
	w.cluster.AwaitMirrored()
	w.eventually("the six types are mirrored", func() bool { return strings.HasPrefix(w.condition("Ready"), "True") })
	return w
}
