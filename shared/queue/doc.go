// Package queue is the store every function shares: one Redis or Valkey keyspace under one prefix.
//
// It keeps the facts that audit and admission delivered until a change asks for its author, and it
// remembers how far the drains of watchcommit got. It never keeps a resource's content, a URL, a token
// or a Secret.
//
// # Keyspace
//
// <p> is the key prefix, <gr> is "configmaps" for the core group and "apps/deployments" otherwise.
// <branch> and <repo> are digests that name a branch and a repository without spelling its URL.
//
//	key                                                        type    TTL          writer         reader
//	<p>:author:v1:audit:route:<route>:<gr>:object:<uid>:<rv>   string  fact TTL     auditingest    watchcommit, who
//	<p>:author:v1:audit:route:<route>:<gr>:object:<uid>:last   string  fact TTL     auditingest    watchcommit, who
//	<p>:author:v1:audit:route:<route>:<gr>:rv:<rv>             string  fact TTL     auditingest    watchcommit, who
//	<p>:author:v1:audit:route:<route>:<gr>:name:<ns>:<name>    string  fact TTL     auditingest    watchcommit, who
//	<p>:author:v1:audit:route:<route>:<gr>:scope:<ns>          string  fact TTL     auditingest    watchcommit, who
//	<p>:author:v1:audit:route:<route>:deletion:<uid>           string  fact TTL     auditingest    watchcommit, who
//	<p>:author:v1:command:<uid>                                string  1 h          authorcapture  watchcommit
//	<p>:watch:v1:target:<uid>:<gr>:cluster:last-rv             string  1 h          watchcommit    watchcommit
//	<p>:watch:v1:target:<uid>:<gr>:namespace:<ns>:last-rv      string  1 h          watchcommit    watchcommit
//	<p>:commit:v1:route:<route>:heard                          string  30 d         auditingest    watchcommit
//	<p>:commit:v1:target:{<uid>}:shards                        hash    1 h          watchcommit    watchcommit
//	<p>:commit:v1:target:{<uid>:<gr>:<scope>}:waiting          hash    1 h          watchcommit    watchcommit
//	<p>:commit:v1:target:{<uid>:<gr>:<scope>}:objects          hash    1 h          watchcommit    watchcommit
//	<p>:commit:v1:branch:{<branch>}:lease                      string  lease        watchcommit    watchcommit
//	<p>:commit:v1:branch:{<branch>}:fence                      string  7 d          watchcommit    watchcommit
//	<p>:commit:v1:branch:{<branch>}:dirty                      string  1 h          watchcommit    watchcommit
//	<p>:commit:v1:branch:{<branch>}:intents                    hash    24 h         watchcommit    watchcommit
//	<p>:commit:v1:branch:{<branch>}:commits                    hash    7 d          watchcommit    watchcommit
//	<p>:commit:v1:branch:{<branch>}:tip                        string  24 h         watchcommit    watchcommit
//	<p>:commit:v1:repo:{<repo>}:objects                        hash    24 h         watchcommit    watchcommit
//	<p>:commit:v1:repo:{<repo>}:objects-before                 hash    24 h         watchcommit    watchcommit
//
// The keys of the author family hold an attribution.Record, but for name and scope, which hold up to 128
// attribution.Requests, a line each. One event writes at most four keys for an object: exact, last, deletion and
// name. A fact of a RequestResponse event takes about 1,350 bytes of Redis (two keys of about 110 bytes and twice its
// JSON of about 430), so a million live ones 1.4 GB; one of a patch at the Metadata level about 400.
//
// The author and watch families are those of gitops-reverser v0.39, byte for byte, so that both can share
// one Redis; name, scope and deletion are beside them, and are only written by RecordEvents. The commit family is
// versioned beside them. Keys between braces share one Cluster slot; no script touches two slots, and nothing ever
// scans.
package queue
