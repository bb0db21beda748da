package spec

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"strconv"
)

// Rand is a seeded source of random numbers, the same on every machine.
type Rand struct{ *rand.Rand }

// NewRand returns a source with the given seed.
func NewRand(seed uint64) *Rand { return &Rand{rand.New(rand.NewPCG(seed, 0x9e3779b97f4a7c15))} }

// Intn returns a random number from 0 to n-1; it panics unless n is positive.
func (r *Rand) Intn(n int) int { return r.IntN(n) }

// Fill fills p with random bytes.
func (r *Rand) Fill(p []byte) {
	for i := range p {
		p[i] = byte(r.Uint32())
	}
}

// Bytes returns n random bytes.
func (r *Rand) Bytes(n int) []byte {
	p := make([]byte, n)
	r.Fill(p)
	return p
}

// SeedOf returns the seed of a case: a hash of the run's seed and the case's ID, so that a record
// does not depend on which other cases run, or in which order.
func SeedOf(run uint64, id string) uint64 {
	sum := sha256.Sum256(fmt.Appendf(nil, "%d/%s", run, id))
	seed, err := strconv.ParseUint(hex.EncodeToString(sum[:8]), 16, 64)
	if err != nil {
		panic(err) // eight bytes in hexadecimal are a uint64
	}
	return seed
}
