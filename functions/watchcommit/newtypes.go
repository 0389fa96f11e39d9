package watchcommit

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// lookForTypesEvery is how often a listening drain asks for resources that are not served. The API server answers that
// nothing has changed with a few bytes. People create objects of a new type within seconds of the type, and what is
// there before its first watch has no author.
const lookForTypesEvery = time.Second

// unserved are the resources that targets name and the API server does not serve.
func (d *drain) unserved() []schema.GroupResource {
	var out []schema.GroupResource
	for _, t := range d.branch.targets {
		for _, n := range t.missing {
			out = append(out, n.Resource)
		}
	}
	return out
}

// lookForTypes ends the round when a resource has begun to be served that was not when the round began, so that the
// next one watches it. Only a drain with time to listen does so: others begin anew soon enough.
func (d *drain) lookForTypes(ctx context.Context) {
	wanted := d.unserved()
	if now := d.now(); d.listen.IsZero() || len(wanted) == 0 || now.Before(d.nextTypes) {
		return
	}
	served, _, err := d.cluster.Resolve(ctx, wanted)
	d.nextTypes = d.now().Add(lookForTypesEvery)
	if err != nil {
		d.log.Warn("new types cannot be looked for", "error", err) // the next round cannot do without, and will say so
		return
	}
	for gr := range served {
		d.log.Info("a resource is served now", "resource", gr.String())
		d.again, d.grown = true, true
	}
}
