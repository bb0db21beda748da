// Package conformance is the suite as a library: the catalogue of cases, the code of
// those that are written, and what runs one on a target and judges it. It runs in any
// Ginkgo suite through Register; package harness supervises it for the conform
// command. It never knows what is below the verbs.
package conformance
