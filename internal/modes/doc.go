// Package modes compares runs that must leave the same bytes: programs that run ahead of the
// event queue and in lockstep, watched by a capture and a timeline and unwatched, on any
// number of OS threads.
//
// Generate makes a program from a seed: hosts, processes, threads, QPs of all types, requests
// of all opcodes, errors, faults, and a profile whose caches and queues are small. Check runs
// it in every mode and compares all that a program or a tester can see: what each call
// returned and when, memory, counters, the capture and the timeline. The same is done with
// every shipped scenario and experiment.
//
//	go test ./internal/modes -run TestModes -programs 100000 -first 1 -timeout 0
//
// runs that many generated programs from a seed on; -workers says how many at a time. A
// program that fails is printed with the command that runs it again, and as data, without
// what is not needed for the failure. As data it goes into testdata, where TestCorpus
// runs it for ever: a seed means another program when the generator changes (Generator).
package modes
