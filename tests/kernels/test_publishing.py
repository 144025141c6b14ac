"""What a kernel publishes reaches a client whose subscription arrives at a bad moment."""

BAD_MOMENT = """
import select, threading, zmq
from jupyter_client.session import Session
from publishing import PublishingThread

context = zmq.Context()
publisher, subscriber = context.socket(zmq.XPUB), context.socket(zmq.SUB)
publisher.bind("ipc:///tmp/published")
subscriber.subscribe(b"")
thread = PublishingThread(publisher, session=Session(key=b"k"))
thread.start()

def busy():
    subscriber.connect("ipc:///tmp/published")
    for longest_s in (10, 0.5):
        select.select([publisher.FD], [], [], longest_s)  # what wakes the thread; a send takes it along
        thread._really_send([b"first"])
    done.set()

done = threading.Event()
thread.schedule(busy)
done.wait()
welcomed = False
while not welcomed and subscriber.poll(10_000):
    welcomed = b"iopub_welcome" in b"".join(subscriber.recv_multipart())
print(welcomed, end="")
subscriber.close(0)
"""


def test_a_subscription_that_arrives_while_the_thread_sends_is_welcomed(inside):
    assert inside.run(BAD_MOMENT).text == "True"
