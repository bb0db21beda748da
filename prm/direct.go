package prm

// Operations of memory on the device that an address stands for (rdma-core
// tests/test_mlx5_dm_ops.py), numbers of bits of DeviceMemCap.MemicOperations.
const (
	MemicIncrement  = 0 // a write adds
	MemicTestAndSet = 1 // a read gives what was there, and leaves 1
	MemicOps        = 2
)

// OpMod of MODIFY_MEMIC (MLX5_MODIFY_MEMIC_OP_MOD_*).
const (
	MemicOpAlloc   = 0
	MemicOpDealloc = 1
)

// ObjTypeReservedQPN is the general object that reserves QP numbers (MLX5_OBJ_TYPE_RESERVED_QPN),
// also a bit of HCACap.GeneralObjTypes.
const ObjTypeReservedQPN = 0x2c

// General objects of flow steering (MLX5_OBJ_TYPE_SW_ICM, MLX5_OBJ_TYPE_FLOW_SAMPLER).
const (
	ObjTypeSWICM       = 0x8
	ObjTypeFlowSampler = 0x20
)

// OptParHighDCIStream is a bit of ModifyQPIn.OptParamMaskHigh
// (MLX5_QPC_OPT_MASK_32_DCI_STREAM_CHANNEL_ID).
const OptParHighDCIStream = 1 << 0

// OptParHighUDPSport is a bit of ModifyQPIn.OptParamMaskHigh (MLX5_QPC_OPT_MASK_32_UDP_SPORT).
const OptParHighUDPSport = 1 << 2
