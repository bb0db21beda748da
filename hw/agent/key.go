// Package agent lets the second node of a hardware run be another machine: an agent there
// starts player processes and joins their standard input and output to a connection. It
// listens on a Unix socket, for its own user, or on TCP, for whoever holds the shared key:
// both ends prove that they do (TLS 1.3 with certificates whose key is derived from the
// shared one), so that without the key no one can make the agent do anything, and a
// recording of the connection is of no use.
package agent

import (
	"bytes"
	"crypto/ed25519"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"math/big"
	"os"
	"time"
)

// Key is what both ends of a TCP connection share.
type Key struct{ private ed25519.PrivateKey }

// How many bytes a key file holds.
const (
	minKey = 32
	maxKey = 64 << 10
)

// ReadKey reads a key file, which only its owner may read.
func ReadKey(name string) (*Key, error) {
	st, err := os.Stat(name)
	if err != nil {
		return nil, fmt.Errorf("key: %w", err)
	}
	if st.Mode().Perm()&0o077 != 0 {
		return nil, fmt.Errorf("key %s can be read by others: chmod 600 it", name)
	}
	if !st.Mode().IsRegular() || st.Size() > maxKey {
		return nil, fmt.Errorf("key %s is not a file of at most %d bytes", name, maxKey)
	}
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("key: %w", err)
	}
	secret := bytes.TrimSpace(text)
	if len(secret) < minKey {
		return nil, fmt.Errorf("key %s has %d bytes: at least %d are needed (openssl rand -hex 32 >%s)", name, len(secret), minKey, name)
	}
	seed, err := hkdf.Key(sha256.New, secret, nil, "conform agent 1", ed25519.SeedSize)
	if err != nil {
		return nil, fmt.Errorf("key %s: %w", name, err)
	}
	return &Key{ed25519.NewKeyFromSeed(seed)}, nil
}

// errStranger is why a handshake fails with who does not have the key.
var errStranger = errors.New("the other end has another key")

// config makes both ends present and demand the key.
func (k *Key) config() (*tls.Config, error) {
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Unix(0, 0), NotAfter: time.Now().AddDate(100, 0, 0)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, k.private.Public(), k.private)
	if err != nil {
		return nil, err
	}
	return &tls.Config{
		MinVersion:   tls.VersionTLS13,
		Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: k.private}},
		ClientAuth:   tls.RequireAnyClientCert,
		// The chain says nothing here: what counts is the key, below, on both sides.
		InsecureSkipVerify: true,
		// A resumed session would skip the proof.
		SessionTicketsDisabled: true,
		VerifyConnection: func(s tls.ConnectionState) error {
			if len(s.PeerCertificates) == 0 {
				return errStranger
			}
			public, ok := s.PeerCertificates[0].PublicKey.(ed25519.PublicKey)
			if !ok || !public.Equal(k.private.Public()) {
				return errStranger
			}
			return nil
		},
	}, nil
}
