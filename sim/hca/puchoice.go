package hca

// PUChoice is which processing unit works on a QP.
type PUChoice uint8

// Choices.
const (
	PUAny      PUChoice = iota // whichever is free
	PUByNumber                 // always the same: that of the QP's number modulo the units
)
