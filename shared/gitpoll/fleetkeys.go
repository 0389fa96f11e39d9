package gitpoll

import "fmt"

// All keys of a fleet are in one hash slot.
//
//	<prefix>:refs:v1:{<fleet>}:sources  hash    per source its record; @sweep and @at   30 days after the last sweep
//	<prefix>:refs:v1:{<fleet>}:fence    string  number of the newest sweep              30 days after the last sweep
//	<prefix>:refs:v1:{<fleet>}:lease    string  number of the sweep that is running     as long as a sweep may take
//	<prefix>:refs:v1:{<fleet>}:hosts    hash    host: until when it wants to be alone   30 days after the last sweep
//	<prefix>:refs:v1:{<fleet>}:known    hash    URL digest: protocol, object format     30 days; each entry a day or two
//
// The writer is refsweep; readers are refsweep and whoever asks it for /observations.
func (f *Fleet) key(part string) string {
	return f.prefix + ":refs:v1:{" + f.name + "}:" + part
}

// sourcesKey: hash of namespace/name to a record, and the fields @sweep (its number) and @at (its end, in ms).
func (f *Fleet) sourcesKey() string { return f.key("sources") }

// fenceKey: string, the number given to the newest sweep. A sweep that is not the newest writes nothing.
func (f *Fleet) fenceKey() string { return f.key("fence") }

// leaseKey: string, the number of the sweep that is running, as a courtesy to ticks that come too early.
func (f *Fleet) leaseKey() string { return f.key("lease") }

// hostsKey: hash of host to "<until in ms> <strikes>".
func (f *Fleet) hostsKey() string { return f.key("hosts") }

// knownKey: hash of URL digest to "<protocol> <object format or -> <expires in ms>".
func (f *Fleet) knownKey() string { return f.key("known") }

// checkFleetName keeps a name from reaching into other keys or slots.
func checkFleetName(name string) error {
	if name == "" || len(name) > 64 {
		return fmt.Errorf("fleet name (%.80q) must have 1 to 64 characters", name)
	}
	for _, c := range name {
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' && c != '.' {
			return fmt.Errorf("fleet name (%q) may hold only a to z, 0 to 9, dots and dashes", name)
		}
	}
	return nil
}
