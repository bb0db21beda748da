package ether

import (
	"encoding/binary"
	"hash/crc32"
)

// AppendFCS appends the frame check sequence of a frame to b (IEEE 802.3, 3.2.9).
func AppendFCS(b, frame []byte) []byte {
	return binary.LittleEndian.AppendUint32(b, crc32.ChecksumIEEE(frame))
}
