package history

import (
	"time"

	"github.com/tidemark-dev/tidemark/shared/attribution"
)

// Credit settles who made the change: the author of the resolution, or nobody. Where nothing else tells when it
// happened, it happened when the request was answered.
func (c *Change) Credit(r attribution.Resolution) {
	c.Actor, c.Evidence = nil, Evidence{Class: string(attribution.Absent), Why: string(r.Why)}
	if r.Result == attribution.Absent || r.Result == "" || r.Fact.Author == "" {
		return
	}
	c.Actor = &Actor{Username: r.Fact.Author, DisplayName: r.Fact.DisplayName, Email: r.Fact.Email, ImpersonatedBy: r.Fact.ImpersonatedBy}
	c.Evidence = Evidence{Class: string(r.Result), Tier: string(r.Fact.Tier), AuditID: r.Fact.AuditID}
	if c.Time.IsZero() {
		c.Time, _ = time.Parse(time.RFC3339Nano, r.Fact.StageTimestamp) // zero when there is none
	}
}
