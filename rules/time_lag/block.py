import numpy as np,time
rng=np.random.default_rng(0)
n=256
x=rng.gamma(2,3,(n,2880)).astype('f4')
def t(f,k=3):
    b=9
    for _ in range(k):
        s=time.perf_counter();f();b=min(b,time.perf_counter()-s)
    return round(b/n*1e6,1)
w=np.lib.stride_tricks.sliding_window_view(x[:, :],120,axis=1)[:, ::60]
print('copy win',t(lambda:np.ascontiguousarray(w)))
wc=np.ascontiguousarray(w)
print('part win120 2k',wc.shape,t(lambda:np.partition(wc,(59,60),axis=-1)))
print('part win120 1k',wc.shape,t(lambda:np.partition(wc,60,axis=-1)))
print('sort win120',t(lambda:np.sort(wc,axis=-1)))
print('part day 2k',t(lambda:np.partition(x,(1439,1440),axis=-1)))
print('part day 1k',t(lambda:np.partition(x,1440,axis=-1)))
print('part day q95',t(lambda:np.partition(x,2735,axis=-1)))
print('sort day',t(lambda:np.sort(x,axis=-1)))
q=x.reshape(n,48,60)
print('part slot 2k',t(lambda:np.partition(q,(3,56),axis=-1)))
print('part slot 1k',t(lambda:np.partition(q,(3),axis=-1)))
print('sort slot',t(lambda:np.sort(q,axis=-1)))
print('sort half30',t(lambda:np.sort(x.reshape(n,96,30),axis=-1)))
print('abs',t(lambda:np.abs(x)), 'sub', t(lambda:x-x), 'isnan', t(lambda:np.isnan(x)), 'isnan.any', t(lambda:np.isnan(x).any(axis=1)))
print('transposed sort slots axis0')
