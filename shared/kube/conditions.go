package kube

// Condition types. Each is an answer to a question that a person asks.
const (
	// ConditionReady of a GitTarget: is everything that it names in git, and does it stay so?
	ConditionReady = "Ready"
	// ConditionAttributed of a GitTarget: do facts about who changed what arrive on its audit route?
	ConditionAttributed = "Attributed"
	// ConditionSecretsSkipped of a GitTarget: does it name Secrets, which are left out?
	ConditionSecretsSkipped = "SecretsSkipped"
	// ConditionCommitted of a CommitRequest: are the author's changes pushed? Unknown until that is decided.
	ConditionCommitted = "Committed"
)

// Reasons of Ready. All but the first are False, and say what a person has to do something about.
const (
	ReasonMirroring             = "Mirroring"
	ReasonInvalidSpec           = "InvalidSpec"
	ReasonRepositoryUnreachable = "RepositoryUnreachable"
	ReasonCredentialsRefused    = "CredentialsRefused"
	ReasonSecretNotReadable     = "SecretNotReadable"
	ReasonBranchProtected       = "BranchProtected"
	ReasonResourceNotServed     = "ResourceNotServed"
	ReasonResourceForbidden     = "ResourceForbidden"
	ReasonPathOwned             = "PathOwned"
	ReasonThrottled             = "Throttled"
	ReasonClusterUnreachable    = "ClusterUnreachable"
)

// Reasons of Attributed.
const (
	ReasonFactsArrive = "FactsArrive"
	ReasonNoFacts     = "NoFactsEver"
	ReasonFactsLate   = "FactsLate"
)

// ReasonForeignChangesReplaced is of an Event alone: a GitTarget has replaced files that somebody else had changed in git.
const ReasonForeignChangesReplaced = "ForeignChangesReplaced"

// Reasons of Committed.
const (
	ReasonPushed         = "Pushed"
	ReasonNothingPending = "NothingPending"
	ReasonWaiting        = "Waiting"
	ReasonAuthorUnknown  = "AuthorUnknown"
	ReasonTargetNotFound = "TargetNotFound"
)
