package spec

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"strconv"
)

// Rand is a seeded source of draws.
type Rand struct{ *rand.Rand }

// NewRand makes the source of a seed.
func NewRand(seed uint64) *Rand { return &Rand{rand.New(rand.NewPCG(seed, 0x9e3779b97f4a7c15))} }

// Intn is a draw from 0..n-1.
func (r *Rand) Intn(n int) int { return r.IntN(n) }

// Fill fills p with draws.
func (r *Rand) Fill(p []byte) {
	for i := range p {
		p[i] = byte(r.Uint32())
	}
}

// Bytes is n drawn bytes.
func (r *Rand) Bytes(n int) []byte {
	p := make([]byte, n)
	r.Fill(p)
	return p
}

// SeedOf is the seed of a case: a hash of the run's seed and the case's ID, so that
// order and company never change a record.
func SeedOf(run uint64, id string) uint64 {
	sum := sha256.Sum256(fmt.Appendf(nil, "%d/%s", run, id))
	seed, err := strconv.ParseUint(hex.EncodeToString(sum[:8]), 16, 64)
	if err != nil {
		panic(err) // eight bytes in hexadecimal are a uint64
	}
	return seed
}
