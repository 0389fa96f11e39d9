package attribution

// Tier is a kind of evidence that names an author without showing uid and version together.
type Tier string

// The tiers. A Weak result of Resolve with a Sighting has one of them.
const (
	// TierVersion: the answer showed the version but not the uid.
	TierVersion Tier = "version"
	// TierDeleted: a delete of this uid.
	TierDeleted Tier = "deleted-uid"
	// TierDeletedName: a delete of this name whose time is the object's deletionTimestamp, or the only one
	// that fits.
	TierDeletedName Tier = "deleted-name"
	// TierEvicted: an eviction of this name at the time of the deletionTimestamp.
	TierEvicted Tier = "evicted-name"
	// TierScope: the only collection delete that covers the object.
	TierScope Tier = "collection-scope"
	// TierOwner: the garbage collector removed the object after this deletion of its owner.
	TierOwner Tier = "owner-deleted"
	// TierNamespace: the object went with its namespace, which this request deleted.
	TierNamespace Tier = "namespace-deleted"
	// TierReplaced: the last request that named the version before as the one it replaced.
	TierReplaced Tier = "replaced-version"
	// TierWritten: the only request to this name that fits the time and the field manager of the change.
	TierWritten Tier = "written-name"
	// TierCreated: the only create of this name at the time of the creationTimestamp.
	TierCreated Tier = "created-name"
)

// Why tells what kept a change from having an author.
type Why string

// The reasons of an Absent result.
const (
	WhyNoFact      Why = "no-fact"           // nothing that was recorded leads here
	WhyContested   Why = "contested"         // requests of several people overlap
	WhySeveral     Why = "several"           // requests of several people fit
	WhyMismatch    Why = "mismatch"          // what was recorded does not fit what was seen
	WhyCrowded     Why = "crowded"           // too many requests to keep them all
	WhyGap         Why = "gap"               // the version before was not seen
	WhyNarrowed    Why = "narrowed"          // the watch asks for some labels only, and the object may just have lost them
	WhyCRDDeleted  Why = "crd-deleted"       // the type went, and the object with it
	WhyUninitiated Why = "initiator-unknown" // a controller completed a removal that somebody else began
)
