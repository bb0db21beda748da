// Package conformance is the suite as a library: the catalogue of cases, the code of
// those that are written, and the runner that runs one on a target and judges it. Describe
// adds the suite to any Ginkgo suite; package harness supervises it for the conform
// command. Nothing in it knows what is below the verbs.
package conformance
