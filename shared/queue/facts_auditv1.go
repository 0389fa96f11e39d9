//go:build !noauditv1

package queue

// The methods that take Kubernetes' own audit types. The programs that are shipped have no use for them and are built
// with the tag noauditv1: those types alone would make a cold start a third longer.

import (
	"context"
	"strings"

	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"

	"github.com/tidemark-dev/tidemark/shared/attribution"
	"github.com/tidemark-dev/tidemark/shared/attribution/kubeaudit"
)

// RecordFact stores what one audit event proves under gitops-reverser's three keys. It stores nothing, without an error, for an event that
// proves nothing: no resource, no name, no user, neither uid nor written version, a dry run. Other
// reasons to leave an event out are the ingest gate's, which the caller has applied.
func (a *AttributionIndex) RecordFact(ctx context.Context, auditRoute string, event auditv1.Event) error {
	return a.RecordFacts(ctx, auditRoute, []auditv1.Event{event})
}

// RecordFacts is RecordFact for many events, in one round trip.
func (a *AttributionIndex) RecordFacts(ctx context.Context, auditRoute string, events []auditv1.Event) error {
	var proofs []attribution.Proof
	keys := attribution.DefaultExtraKeys()
	for i := range events {
		event := kubeaudit.Event(&events[i], keys, "")
		proofs = attribution.Prove(proofs, &event)
	}
	w := a.writer()
	defer a.release(w)
	for i := range proofs {
		proofs[i].Slots &= factSlots
		w.add(auditRoute, &proofs[i])
	}
	return w.flush(ctx)
}

// RecordDeleteCollectionFacts stores a fact for each object that a deletecollection answered with. It
// does nothing for any other verb, or when the answer lists nothing.
func (a *AttributionIndex) RecordDeleteCollectionFacts(ctx context.Context, auditRoute string, event auditv1.Event) error {
	if !strings.EqualFold(event.Verb, "deletecollection") {
		return nil
	}
	return a.RecordFact(ctx, auditRoute, event)
}
