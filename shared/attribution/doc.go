// Package attribution holds the rules by which Tidemark names the author of a change: which audit
// events count (Admit), what a counted event proves and under which keys that proof is filed
// (Facts), and which author, if any, all the proof together names for one watched change (Resolve).
//
// Everything here is pure: no I/O and no clock. Time is known only from the stamps that API servers
// put into audit events and objects. The rule above all rules is that a wrong name is worse than
// none, so whatever leaves two people possible names nobody.
package attribution
