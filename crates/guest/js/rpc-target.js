// RpcTarget: the class whose instances are passed by reference.

class RpcTarget {}
const RpcTargetPrototype = RpcTarget.prototype;
