//go:build !race

package auditingest_test

const raceDetector = false
